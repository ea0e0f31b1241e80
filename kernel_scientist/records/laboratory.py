"""A laboratory: a folder with parameters, problems, background documents and deployments.

A checkout is one. A wheel carries the files of one, from which `kernel-scientist init` makes others. Commands that
record nothing use the wheel's own where there is no other.
"""

import shutil
import tomllib
from pathlib import Path

from kernel_scientist.records.errors import SetupError

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGED = Path(__file__).resolve().parents[1] / "laboratory"
"""Where a wheel has the files; setup.py puts them there. A checkout has no such folder."""


def is_one(folder: Path) -> bool:
    """Whether a folder is a laboratory."""
    return (folder / "params.yaml").is_file() and (folder / "problems").is_dir()


def own() -> Path:
    """Return the laboratory that this package came with: the checkout, else the wheel's."""
    return CHECKOUT if is_one(CHECKOUT) else PACKAGED


def create(folder: Path) -> list[str]:
    """Make a laboratory; return the names of the files and folders that were put there.

    Raises SetupError if one of them is there already, or if the folder cannot be written. Nothing is overwritten.
    """
    source = own()
    names = _checked_in(source) if source == CHECKOUT else sorted(entry.name for entry in source.iterdir())
    if there := next((name for name in names if (folder / name).exists()), None):
        raise SetupError(f"{folder / there} is there already: name a new folder, nothing was written")
    try:
        for name in names:
            _copy(source / name, folder / name)
    except OSError as error:
        raise SetupError(f"cannot write {folder}: {error.strerror}; name a folder that you may write") from error
    return names


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without what Python compiled; its parent folders are made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def _checked_in(checkout: Path) -> list[str]:
    """Return the names that the checkout's pyproject.toml gives: setup.py packs the same ones."""
    settings = tomllib.loads((checkout / "pyproject.toml").read_text())
    return sorted(settings["tool"]["gpu-kernel-scientist"]["laboratory"])
