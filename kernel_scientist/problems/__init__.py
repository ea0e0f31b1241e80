"""Problems by name."""

from pathlib import Path

from kernel_scientist.problems.taskfolder import Problem, load
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError


def folder() -> Path:
    """Return the folder that holds the problems."""
    return environment.root() / "problems"


def names() -> list[str]:
    """Return the problems' names."""
    return sorted(p.parent.name for p in folder().glob("*/task.yml"))


def find(name: str, device: str = "cpu") -> Problem:
    """Return a problem by name or folder. Raises SetupError, which lists the known names, if there is none."""
    for candidate in (folder() / name, Path(name)):
        if (candidate / "task.yml").is_file():
            return load(candidate.resolve(), device)
    raise SetupError(f"unknown problem {name!r}; known: {', '.join(names())}, or the path of a task folder")
