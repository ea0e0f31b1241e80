"""The set-up keeps what it should and pins the rest."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

import install
from tests.conftest import ROOT

PINS = (ROOT / "constraints.txt").read_text()


def test_constraints_pin_everything_and_name_no_index() -> None:
    lines = [line for line in PINS.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!_-]+", line) for line in lines), lines
    pins = {line.split("==")[0].lower(): line.split("==")[1] for line in lines}
    assert pins["torch"] == "2.13.0" and pins["triton"] == "3.7.1"
    assert tuple(map(int, pins["fastapi"].split(".")[:2])) < (0, 151)
    assert "://" not in PINS and "index" not in PINS
    assert tuple(map(int, pins["litellm"].split(".")[:3])) >= (1, 83, 7)


@pytest.mark.parametrize("version", ["2.13.0+rocm7.2", "2.9.1+cu130", "2.13.0+cpu", "2.8.0"])
def test_a_compatible_torch_is_kept(version: str) -> None:
    found = {"torch": version, "triton": "3.5.0+git1", "gpu": "7.2"}
    assert install.keeps(found)
    pins = install.constraints(PINS, found).splitlines()
    assert f"torch=={version}" in pins and "triton==3.5.0+git1" in pins
    assert "torch==2.13.0" not in pins and "triton==3.7.1" not in pins and len(pins) == len(PINS.splitlines())


@pytest.mark.parametrize("version", [None, "2.7.1", "1.13.0", "3.0.0", "nightly"])
def test_another_torch_is_not(version: str | None) -> None:
    found = {"torch": version, "triton": None, "gpu": None}
    assert not install.keeps(found) and install.constraints(PINS, found) == PINS


def test_an_environment_over_a_gpu_torch_sees_it(tmp_path: Path) -> None:
    """A Python that has a GPU build of torch is shared with the new environment and nothing of it is replaced."""
    base, fake = tmp_path / "base", tmp_path / "base-site"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    (fake / "torch-2.9.1+rocm7.0.dist-info").mkdir(parents=True)
    (fake / "torch-2.9.1+rocm7.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+rocm7.0\n"
    )
    (fake / "torch").mkdir()
    (fake / "torch" / "__init__.py").write_text("")
    (fake / "torch" / "version.py").write_text("cuda = None\nhip = '7.0'\n")
    site = next((base / "lib").glob("python*/site-packages"))
    (site / "base.pth").write_text(str(fake) + "\n")
    found = install.probe(str(base / "bin" / "python"))
    assert found == {"torch": "2.9.1+rocm7.0", "triton": None, "gpu": "7.0"} and install.keeps(found)


def test_an_environment_made_from_another_sees_what_that_one_sees(tmp_path: Path) -> None:
    """By itself it would see the packages below the other one only; torch may be in the other one."""
    first, second, elsewhere = tmp_path / "first", tmp_path / "second", tmp_path / "elsewhere"
    (elsewhere / "torch_stand_in").mkdir(parents=True)
    for folder in (first, second):
        options = ["--without-pip", "--system-site-packages"]
        subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)
    (next((first / "lib").glob("python*/site-packages")) / "elsewhere.pth").write_text(f"{elsewhere}\n")
    script = f"import install, pathlib; install.share(pathlib.Path({str(second)!r}))"
    subprocess.run([str(first / "bin" / "python"), "-c", script], cwd=ROOT, check=True)
    subprocess.run([str(second / "bin" / "python"), "-c", "import torch_stand_in"], check=True)


def test_an_environment_that_was_moved_runs_its_programs(tmp_path: Path) -> None:
    here, moved = tmp_path / "lab" / ".venv", tmp_path / "home" / "lab" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(here)], check=True)
    moved.parent.mkdir(parents=True)
    here.rename(moved)
    with pytest.raises(FileNotFoundError):
        subprocess.run([str(moved / "bin" / "pip"), "--version"], check=False)
    for changed in (True, False):
        assert install.relocate(moved) is changed
        told = subprocess.run([str(moved / "bin" / "pip"), "--version"], capture_output=True, text=True, check=True)
        assert f"from {moved}/" in told.stdout
    activated = subprocess.run(
        ["sh", "-c", f". {moved}/bin/activate && command -v pip"], capture_output=True, text=True
    )
    assert activated.stdout == f"{moved}/bin/pip\n"


def test_make_installs_again_where_the_folder_was_moved_to(tmp_path: Path) -> None:
    """The real Makefile; its install.py only says where it ran."""
    here, moved = tmp_path / "here", tmp_path / "moved"
    (here / ".venv").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", here)
    for name in ("pyproject.toml", "constraints.txt"):
        (here / name).touch()
    (here / "install.py").write_text("import os\nprint('installing in', os.getcwd())\n")

    def made(folder: Path) -> str:
        done = subprocess.run(["make", "-C", str(folder), "install"], capture_output=True, text=True, check=True)
        return "".join(line for line in done.stdout.splitlines() if line.startswith("installing"))

    assert [made(here), made(here)] == [f"installing in {here}", ""]
    here.rename(moved)
    assert [made(moved), made(moved)] == [f"installing in {moved}", ""]
    (moved / "constraints.txt").write_text("another pin\n")
    assert made(moved) == f"installing in {moved}"


def test_an_old_python_gets_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 0))
    assert install.main() == 2
    assert "3.11 or newer is needed" in capsys.readouterr().out


def test_every_package_and_its_data_are_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    tops = ("kernel_scientist", "flows", "tasks")
    packages = set(find_packages(str(ROOT), include=settings["packages"]["find"]["include"]))
    folders = [file.parent for top in tops for file in (ROOT / top).rglob("__init__.py")]
    assert packages == {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    tracked = subprocess.run(["git", "ls-files", *tops], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in (ROOT / name for name in tracked.split() if (ROOT / name).exists()):
        package = next(p for p in file.parents if (p / "__init__.py").exists())
        if file.parent == package and file.suffix == ".py":
            continue
        patterns = settings["package-data"]["*"]
        assert any(file in package.glob(pattern) for pattern in patterns), f"{file} would not be installed"
