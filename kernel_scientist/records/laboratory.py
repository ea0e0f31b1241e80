"""A laboratory: a folder with parameters, problems, background documents and deployments.

A checkout is one. A wheel carries the files of one, from which `kernel-scientist init` makes others. Commands that
record nothing use the wheel's own where there is no other.
"""

import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

from kernel_scientist.records.errors import SetupError, StoppedError

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGED = Path(__file__).resolve().parents[1] / "laboratory"
"""Where a wheel has the files; setup.py puts them there. A checkout has no such folder."""
REMOVED = "what was made was removed"


def is_one(folder: Path) -> bool:
    """Whether a folder is a laboratory."""
    return (folder / "params.yaml").is_file() and (folder / "problems").is_dir()


def own() -> Path:
    """Return the laboratory that this package came with: the checkout, else the wheel's."""
    return CHECKOUT if is_one(CHECKOUT) else PACKAGED


def create(folder: Path) -> list[str]:
    """Make a laboratory; return the names of the files and folders that were put there.

    Raises SetupError if one of them is there already, or if the folder cannot be written. Nothing is overwritten, and
    what was made is removed if not all of it can be.
    """
    source = own()
    names = _checked_in(source) if source == CHECKOUT else sorted(entry.name for entry in source.iterdir())
    if there := next((name for name in names if (folder / name).exists()), None):
        raise SetupError(f"{folder / there} is there already: name a new folder, nothing was written")
    made = list[Path]()
    try:
        for name in names:
            made.append(_first_missing(folder / name))
            _copy(source / name, folder / name)
    except OSError as error:
        _remove(made)
        raise SetupError(
            f"cannot write {folder}: {_reason(error)}; {REMOVED}; name a folder that you may write, with room"
        ) from error
    except KeyboardInterrupt as error:
        _remove(made)
        raise StoppedError(f"{REMOVED} from {folder}") from error
    return names


def _first_missing(place: Path) -> Path:
    """Return the outermost of a path and its parents that does not exist."""
    return next(one for one in (*reversed(place.parents), place) if not one.exists())


def _remove(made: Sequence[Path]) -> None:
    for place in reversed(made):
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        elif place.is_file():
            place.unlink()


def _reason(error: OSError) -> str:
    """Return what the system said; a folder's copy has a list of what happened to its files."""
    if isinstance(error, shutil.Error):
        return str(error.args[0][0][2]).partition("] ")[2].partition(":")[0]
    return error.strerror or str(error)


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
