"""A guest uses the network, reads this machine, writes where it may, and sees nothing hidden: both enclosures."""

import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.sandbox import bubblewrap, guest, landlock
from kernel_scientist.sandbox.guest import Walls
from tests.sandbox.test_confine import ended, running

WAIT_S = 60


@pytest.fixture(params=["bubblewrap", "Landlock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "Landlock":
        if not landlock.version():
            pytest.skip("this machine has no Landlock")
        monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    elif not bubblewrap.bubblewrap_works():
        pytest.skip("bubblewrap cannot run here")
    assert guest.kind() == request.param
    return str(request.param)


def run(walls: Walls, *program: str) -> subprocess.CompletedProcess[str]:
    command = guest.command(program, walls)
    return subprocess.run(command, cwd=walls.folder, capture_output=True, text=True, check=False, timeout=WAIT_S)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("own", "given/secret", "lab/open", "lab/problems"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "alone").write_text("alone")
    return tmp_path


def test_it_writes_in_its_folders_only_and_does_not_see_what_is_hidden(kind: str, places: Path) -> None:
    hidden = (str(places / "lab/problems"), str(places / "given/secret"), str(places / "alone"))
    walls = Walls(str(places / "own"), (str(places / "given/secret"), str(places / "given")), hidden)
    (places / "given/open").mkdir()
    for path in ("own/new", "given/open/new"):
        assert run(walls, "/bin/sh", "-c", f"echo text > {places / path}").returncode == 0, path
        assert (places / path).read_text() == "text\n"
    for path in ("lab/open/file", "lab/new", "given/secret/file", "lab/problems/file", "alone", "alone2"):
        before = (places / path).read_text() if (places / path).exists() else None
        run(walls, "/bin/sh", "-c", f"echo overwritten > {places / path}")
        assert ((places / path).read_text() if (places / path).exists() else None) == before, path
    for path in ("lab/problems/file", "given/secret/file", "alone"):
        assert run(walls, "/bin/cat", str(places / path)).stdout == "", path
    home = run(walls, "/bin/sh", "-c", f"echo text > {Path.home()}/of-a-guest").returncode
    assert home != 0 and not (Path.home() / "of-a-guest").exists()
    assert run(walls, "/bin/cat", "/etc/passwd").stdout == Path("/etc/passwd").read_text()
    assert run(walls, "/bin/sh", "-c", "exit 7").returncode == 7


@pytest.mark.usefixtures("kind")
def test_it_has_no_capabilities(places: Path) -> None:
    told = run(Walls(str(places / "own"), (), ()), "/bin/cat", "/proc/self/status").stdout
    assert [int(line.split()[1], 16) for line in told.splitlines() if line.startswith(("CapEff", "CapPrm"))] == [0, 0]


@pytest.mark.usefixtures("kind")
def test_one_that_cannot_be_started_says_why(places: Path) -> None:
    done = run(Walls(str(places / "own"), (), ()), "/no/such/program")
    assert done.returncode and "No such file or directory" in done.stderr


@pytest.mark.usefixtures("kind")
def test_it_reaches_the_network(places: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        call = f"import socket; socket.create_connection(('127.0.0.1', {listening.getsockname()[1]})).sendall(b'hello')"
        done = run(Walls(str(places / "own"), (), ()), sys.executable, "-S", "-c", call)
        assert done.returncode == 0, done.stderr
        with listening.accept()[0] as connection:
            assert connection.recv(5) == b"hello"


LEAVES = "setsid sleep {0} & (setsid sleep {0} &) ; echo left"


@pytest.mark.usefixtures("kind")
def test_what_it_leaves_behind_ends_with_it(places: Path) -> None:
    seconds = f"{200000 + os.getpid()}.5"
    done = run(Walls(str(places / "own"), (), ()), "/bin/sh", "-c", LEAVES.format(seconds))
    assert done.stdout == "left\n" and ended(seconds)


RUNS = """
import subprocess, sys
from kernel_scientist.sandbox import bubblewrap, guest
if sys.argv[3] == "Landlock":
    bubblewrap.bubblewrap_works = lambda: False
subprocess.run(guest.command(["/bin/sh", "-c", sys.argv[2]], guest.Walls(sys.argv[1], (), ())), start_new_session=True)
"""


def test_it_ends_when_who_runs_it_is_killed(kind: str, places: Path) -> None:
    seconds = f"{300000 + os.getpid()}.5"
    words = [str(places / "own"), f"setsid sleep {seconds} & sleep {seconds}", kind]
    ours = subprocess.Popen([sys.executable, "-c", RUNS, *words], cwd=bubblewrap.PACKAGE.parent)
    deadline = time.monotonic() + WAIT_S
    while not running(f"sleep\0{seconds}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running(f"sleep\0{seconds}")
    ours.kill()
    ours.wait()
    while not ended(seconds) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended(seconds)


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, max_size=3)


@given(st.lists(PATHS.filter(len), max_size=4), PATHS)
def test_beside_hidden_paths_is_all_else(
    tmp_path_factory: pytest.TempPathFactory, hidden: list[list[str]], of: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "tree"
    for names in itertools.product("abc", repeat=3):
        root.joinpath(*names).mkdir(parents=True, exist_ok=True)
        root.joinpath(*names, "file").touch()
    path, secrets = root.joinpath(*of), [root.joinpath(*names) for names in hidden]
    found = guest.beside(path, secrets)
    for file in root.rglob("file"):
        above = {*file.parents}
        assert (not above.isdisjoint(found)) == (path in above and above.isdisjoint(secrets)), file
