"""A confined program reads the system, its folder and what it is given besides, by Landlock and by bubblewrap."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_scientist.sandbox import bubblewrap, confine, landlock


def cat(path: Path, folder: Path, readable: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = confine.command(["/bin/cat", str(path)], folder, readable)
    environment = {"PYTHONPATH": str(bubblewrap.PACKAGE.parent), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(params=["landlock", "bubblewrap"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "landlock" and not landlock.version():
        pytest.skip("this machine has no Landlock")
    if request.param == "bubblewrap":
        if not bubblewrap.bubblewrap_works():
            pytest.skip("bubblewrap cannot run here")
        monkeypatch.setattr(landlock, "version", lambda: 0)
    return str(request.param)


@pytest.mark.usefixtures("kind")
def test_what_is_named_readable_is_read_and_nothing_beside_it(tmp_path: Path) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    readable = (str(tmp_path / "open"), str(tmp_path / "not there"))
    assert cat(tmp_path / "open/file", scratch, readable).stdout == "open"
    assert cat(tmp_path / "shut/file", scratch, readable).returncode != 0
    assert cat(tmp_path / "open/file", scratch, ()).returncode != 0


RUNS = """
import sys
from pathlib import Path
from kernel_scientist.sandbox import confine
folder = Path(sys.argv[1])
confine.run(confine.command(["/bin/sleep", sys.argv[2]], folder), folder, 300)
"""


@pytest.mark.parametrize("wait_s", [0.0, 0.03, 0.1, 1.5])
def test_a_confined_program_ends_with_whoever_runs_it(tmp_path: Path, wait_s: float) -> None:
    """By SIGKILL, when the program has only just been started as well as later."""
    seconds = f"{100000 + os.getpid()}.{int(wait_s * 1000)}"
    ours = subprocess.Popen([sys.executable, "-c", RUNS, str(tmp_path), seconds], cwd=bubblewrap.PACKAGE.parent)
    deadline = time.monotonic() + 30
    while not (seen := running(seconds, beside=ours.pid)) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert seen  # looked at once: a process that is just becoming another program has no command for a moment
    time.sleep(wait_s)
    ours.kill()
    ours.wait()
    while not ended(seconds) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended(seconds)


def ended(word: str) -> bool:
    """Whether no process has a word in its command, look after look: who becomes a program has none for a moment."""
    for _ in range(5):
        if running(word):
            return False
        time.sleep(0.02)
    return True


def running(word: str, beside: int = 0) -> list[int]:
    """Return the processes that have a word in their command, but for one."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (path / "cmdline").read_bytes() and int(path.name) not in (beside, os.getpid()):
                found.append(int(path.name))
    return found


def test_a_busy_machine_gives_a_compiler_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0))
    for load, factor in ((0.0, 1.0), (cores, 1.0), (2.5 * cores, 2.5), (100.0 * cores, confine.CPU_SHARE)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert confine.patience_s(10) == pytest.approx(10 * factor)
