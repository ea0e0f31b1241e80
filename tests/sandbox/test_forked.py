"""A module's `main` runs in processes that are forked from one that has imported it, confined as programs are."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.sandbox import bubblewrap, confine, forked, landlock

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this machine has no Landlock")
MODULE = """
import ctypes, os, sys, time
from pathlib import Path

IMPORT, calls = os.urandom(8).hex(), []

def main():
    calls.append(1)
    what, _, rest = Path("what").read_text().partition(" ")
    if what == "say":
        print(IMPORT, len(calls), os.getcwd(), os.environ["TMPDIR"], flush=True)
    elif what == "read":
        print(Path(rest).read_text())
    elif what == "sleep":
        Path("begun").touch()
        time.sleep(float(rest))
    elif what == "end":
        sys.exit(int(rest))
    elif what == "fault":
        ctypes.string_at(0)
    elif what == "children":
        if os.fork() == 0:
            os.setsid()
            time.sleep(100)
        Path("begun").touch()
    elif what == "fill":
        print(len(bytearray(int(rest))))
    elif what == "socket":
        os.write(int(rest), b"{}")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "modules").mkdir()
    name = f"forked_{os.getpid()}_{tmp_path.name}"
    (tmp_path / "modules" / f"{name}.py").write_text(MODULE)
    usual = confine.environment()
    paths = os.pathsep.join((str(tmp_path / "modules"), usual["PYTHONPATH"]))
    monkeypatch.setattr(confine, "environment", lambda: {**usual, "PYTHONPATH": paths})
    yield name
    server(name).close()


def server(module: str) -> forked.InspectionServer:
    return forked._server(module, os.getpid())  # pyright: ignore[reportPrivateUsage]


def server_pid(module: str) -> int:
    process = server(module)._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    return process.pid


def asked(module: str, folder: Path, what: str, timeout_s: float = 60, memory: int = 8 << 30) -> tuple[int | None, str]:
    folder.mkdir(exist_ok=True)
    (folder / "what").write_text(what)
    return forked.run(module, folder, (), timeout_s, memory)


def test_each_call_is_a_fresh_process_of_one_import(module: str, tmp_path: Path) -> None:
    imports = set[str]()
    for name in "ab":
        folder = tmp_path / name
        status, said = asked(module, folder, "say")
        imported, calls, *places = said.split()
        assert status == 0 and calls == "1"
        assert places == [str(folder), str(folder)]
        imports.add(imported)
    assert len(imports) == 1


def test_it_reads_its_folder_and_nothing_beside_it(module: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "own").write_text("mine")
    assert asked(module, tmp_path / "a", "read own") == (0, "mine\n")
    status, said = asked(module, tmp_path / "a", f"read {tmp_path / 'other'}")
    assert status == 1 and "PermissionError" in said and "secret" not in said


def test_it_has_no_descriptor_of_the_server(module: str, tmp_path: Path) -> None:
    for number in (3, 4, 5, 6, 7, 8):
        status, said = asked(module, tmp_path / "a", f"socket {number}")
        assert status == 1 and "Bad file descriptor" in said


def test_memory_is_limited(module: str, tmp_path: Path) -> None:
    status, said = asked(module, tmp_path / "a", f"fill {3 << 30}", memory=2 << 30)
    assert status == 1 and "MemoryError" in said


@pytest.mark.parametrize(("what", "status"), [("end 0", 0), ("end 7", 7), ("fault", 128 + signal.SIGSEGV)])
def test_the_status_is_that_of_a_program(module: str, tmp_path: Path, what: str, status: int) -> None:
    assert asked(module, tmp_path / "a", what) == (status, "")


def test_one_that_takes_too_long_is_ended(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(module, tmp_path / "a", "say")
    monkeypatch.setattr(confine, "patience_s", lambda limit_s: limit_s)
    start = time.monotonic()
    assert asked(module, tmp_path / "a", "sleep 100.25", timeout_s=0.5) == (None, "")
    assert time.monotonic() - start < 30
    assert not children_of(server_pid(module))


def test_several_run_at_a_time(module: str, tmp_path: Path) -> None:
    found: list[tuple[int | None, str]] = []
    asked(module, tmp_path / "x", "say")

    def sleep(place: Path) -> None:
        found.append(asked(module, place, "sleep 1"))

    threads = [threading.Thread(target=sleep, args=(tmp_path / f"s{n}",)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [(0, "")] * 4


def test_its_children_end_with_it(module: str, tmp_path: Path) -> None:
    """One that left the process group, too."""
    asked(module, tmp_path / "a", "children")
    assert not children_of(server_pid(module))


def test_a_server_that_was_killed_is_replaced(module: str, tmp_path: Path) -> None:
    """What it was running is no verdict on a kernel."""
    found: list[BaseException] = []

    def sleeping() -> None:
        try:
            asked(module, tmp_path / "a", "sleep 60")
        except InfrastructureError as error:
            found.append(error)

    (thread := threading.Thread(target=sleeping)).start()
    while not (tmp_path / "a" / "begun").exists():
        time.sleep(0.01)
    first = server_pid(module)
    os.kill(first, signal.SIGKILL)
    thread.join(30)
    assert len(found) == 1 and "has ended" in str(found[0])
    assert asked(module, tmp_path / "a", "end 0") == (0, "")
    assert server_pid(module) != first


RUNS = """
import os, sys
from pathlib import Path
from kernel_scientist.sandbox import confine, forked
usual = confine.environment()
confine.environment = lambda: {**usual, "PYTHONPATH": sys.argv[3] + os.pathsep + usual["PYTHONPATH"]}
forked.run(sys.argv[1], Path(sys.argv[2]), (), 300, 8 << 30)
"""


def test_it_ends_with_whoever_asked_for_it(module: str, tmp_path: Path) -> None:
    """By SIGKILL, the server as well."""
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "what").write_text("sleep 200.5")
    arguments = [module, str(folder), str(tmp_path / "modules")]
    ours = subprocess.Popen([sys.executable, "-c", RUNS, *arguments], cwd=bubblewrap.PACKAGE.parent)
    deadline = time.monotonic() + 60
    while not (folder / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (serving,) = children_of(ours.pid)
    kept = children_of(serving)
    inner = [one for keeper in kept for one in children_of(keeper)]
    assert kept and inner
    ours.kill()
    ours.wait()
    while any(map(alive, (serving, *kept, *inner))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, (serving, *kept, *inner)))


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(number) for number in text.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
