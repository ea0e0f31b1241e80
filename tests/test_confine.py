"""A confined program reads the system, its folder and what it is given besides, by Landlock and by bubblewrap."""

import subprocess
from pathlib import Path

import pytest

from kernel_scientist.harness import confine, enclosure, landlock


def cat(path: Path, folder: Path, readable: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = confine.command(["/bin/cat", str(path)], folder, readable)
    environment = {"PYTHONPATH": str(enclosure.PACKAGE.parent), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=["landlock", "bubblewrap"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "landlock" and not landlock.version():
        pytest.skip("this machine has no Landlock")
    if request.param == "bubblewrap":
        if not enclosure.bubblewrap_works():
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
