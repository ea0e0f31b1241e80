"""Packages that a user has put on Python's path are there for confined processes; a laboratory on it stays hidden."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.compilers import gxx
from kernel_scientist.profile import profiler
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import bubblewrap, confine, landlock
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

KINDS = ("bubblewrap", "landlock")
KERNEL = "import given_package\ndef custom_kernel(data): return data\nassert given_package.PLACE == {place!r}\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as `pip install --target` leaves it, which comes first on the path as PYTHONPATH does."""
    folder = tmp_path / "wheels"
    (folder / "given_package").mkdir(parents=True)
    (folder / "given_package-1.0.dist-info").mkdir()
    (folder / "given_package/__init__.py").write_text(f"PLACE = {str(folder)!r}\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    bubblewrap.readable.cache_clear()
    yield folder
    bubblewrap.readable.cache_clear()


def use(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (bubblewrap.bubblewrap_works() if kind == "bubblewrap" else landlock.version()):
        pytest.skip(f"this machine has no {kind}")
    if kind == "bubblewrap":
        monkeypatch.setattr(landlock, "version", lambda: 0)
    else:
        monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_confined_process_imports_it(
    kind: str, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(kind, monkeypatch)
    (scratch := tmp_path / "scratch").mkdir()
    program = [sys.executable, "-P", "-c", "import given_package; print(given_package.PLACE)"]
    command = confine.command(program, scratch, bubblewrap.readable())
    assert confine.run(command, scratch, 60) == (0, f"{packages}\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_imports_it(kind: str, packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(kind, monkeypatch)
    with WorkerPool(Harness()) as pool, pool.worker() as worker:
        assert kind in pool.layers
        worker.load(KERNEL.format(place=str(packages)), lambda request: (gxx.build(request).path, ""))


def test_a_profiled_process_imports_it(packages: Path, tmp_path: Path) -> None:
    assert str(packages) in profiler.environment("cpu", tmp_path)["PYTHONPATH"]


def test_the_current_folder_and_the_laboratory_stay_hidden(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they look like folders of packages."""
    (other := packages.parent / "problems").mkdir()
    (inside := packages / "laboratory").mkdir()
    monkeypatch.chdir(inside)  # so the folder of packages holds the current one
    monkeypatch.setattr(sys, "path", ["", ".", "wheels", str(other), str(ROOT), *sys.path])
    bubblewrap.readable.cache_clear()
    assert bubblewrap.python_path() == str(ROOT)
    assert not {"", ".", "wheels", str(other), str(inside), str(packages), str(ROOT)} & set(bubblewrap.readable())


def test_all_that_nvidias_driver_reports_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `nvidia-uvm` CUDA does not start (error 304)."""
    names = {"nvidia", "nvidia-caps", "nvidia-uvm"}
    for name in (*names, "rtc"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(bubblewrap, "PROC_DRIVER", tmp_path)
    assert {path for path in bubblewrap.visible("cuda") if path.startswith(str(tmp_path))} == {
        str(tmp_path / name) for name in names
    }
    assert not any(path.startswith(str(tmp_path)) for path in bubblewrap.visible("cpu"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_confined_process_finds_this_package_without_its_installation(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it finds is this one, although it cannot list the laboratory around it."""
    use(kind, monkeypatch)
    said = "from kernel_scientist import load; from kernel_scientist.sandbox import bubblewrap as b; print(b.PACKAGE)"
    program = [sys.executable, "-P", "-S", "-c", said]
    command = confine.command(program, tmp_path, bubblewrap.readable())
    assert confine.run(command, tmp_path, 60) == (0, f"{bubblewrap.PACKAGE}\n")
