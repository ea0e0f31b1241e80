"""The package outside of its checkout: a wheel without extras in an empty environment, and the laboratory it makes."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.records import environment, laboratory
from kernel_scientist.records.errors import SetupError
from tests.conftest import ROOT

Run = Callable[..., subprocess.CompletedProcess[str]]
PIP = ("-I", "-m", "pip", "--disable-pip-version-check", "--quiet")


def test_a_laboratory_is_made_once_and_is_found_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new"
    names = laboratory.create(folder)
    assert {"params.yaml", "problems", "knowledge", "data/published"} <= {*names}
    assert (folder / "params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()
    assert not [*folder.rglob("__pycache__")]
    monkeypatch.delenv("KERNEL_SCIENTIST_ROOT", raising=False)
    monkeypatch.chdir(folder / "problems" / "identity")
    assert environment.root() == folder and environment.is_writable()
    (folder / "params.yaml").write_text("mine")
    with pytest.raises(SetupError, match="is there already: name a new folder, nothing was written"):
        laboratory.create(folder)
    assert (folder / "params.yaml").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"cannot write .*file/new: Not a directory"):
        laboratory.create(tmp_path / "file" / "new")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a program of an environment in which nothing but the wheel and what it needs is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, *PIP, "wheel", str(ROOT), "--no-deps", "-w", str(folder)], check=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / "bin"
    pins = ("-c", str(ROOT / "constraints.txt"))
    subprocess.run([str(programs / "python"), *PIP, "install", *pins, str(wheel)], check=True)
    own = {"HOME": str(folder), "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}
    given = {**own, **{name: os.environ[name] for name in ("KERNEL_SCIENTIST_CACHE",) if name in os.environ}}
    (folder / "elsewhere").mkdir()

    def run(*command: str, cwd: Path = folder / "elsewhere") -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_wheel_without_extras_evaluates_a_kernel_outside_of_the_checkout(installed: Run, tmp_path: Path) -> None:
    assert installed("python", "-c", "import mlflow").returncode == 1
    kernel = tmp_path / "k.py"
    shutil.copy(ROOT / "problems/rmsnorm/seeds/cpp_blocked.py", kernel)
    quick = ("--set", "harness.stages=1", "--set", "harness.noise_runs=0")
    done = installed("kernel-scientist", "evaluate", str(kernel), "--problem", "rmsnorm", *quick, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "ok", done.stderr

    line = "import kernel_scientist as ks; print(ks.evaluate({!r}, problem='rmsnorm', overrides={!r}).speedup)"
    done = installed("python", "-c", line.format(str(kernel), ["harness.stages=1", "harness.noise_runs=0"]))
    assert done.returncode == 0 and re.match(r"(\d[\d.,]*x|not resolved) \[\d", done.stdout), done.stderr

    done = installed("kernel-scientist", "optimize")
    assert done.returncode == 2 and "there is no laboratory here or above" in done.stderr, done.stderr
    assert installed("kernel-scientist", "init", str(tmp_path / "lab")).returncode == 0
    done = installed("kernel-scientist", "optimize", cwd=tmp_path / "lab")
    assert done.returncode == 2 and "pip install 'gpu-kernel-scientist[all]'" in done.stderr, done.stderr
    assert "rmsnorm" in installed("kernel-scientist", "problems", "list", cwd=tmp_path / "lab").stdout
