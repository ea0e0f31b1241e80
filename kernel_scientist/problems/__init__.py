"""Problems by name or by path."""

from collections.abc import Sequence
from pathlib import Path

from kernel_scientist.problems import kernelbench, taskfolder
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.names import slug


def folder() -> Path:
    """Return the folder that holds the problems."""
    return environment.root() / "problems"


def names() -> list[str]:
    """Return the problems' names: paths below `problems/`, such as `identity`, `amd/fp8-mm` or `level1/1_Square`."""
    return [_name(place) for place in within(folder())]


def within(place: Path) -> list[Path]:
    """Return the task folders and KernelBench files at and below a path, up to three levels deep."""
    if (place / "task.yml").is_file() or place.is_file():
        return [place]
    patterns = [f"{'*/' * depth}{file}" for depth in range(4) for file in ("task.yml", "[0-9]*_*.py")]
    found = [file for pattern in patterns for file in place.glob(pattern)]
    tasks = {file.parent for file in found if file.name == "task.yml"}
    files = [file for file in found if kernelbench.is_named_so(file) and not tasks & set(file.parents)]
    return sorted((*tasks, *files), key=_order)


def below(paths: Sequence[str]) -> list[Path]:
    """Return the problems at and below some paths, in order, each once; a path may be one below `problems/`.

    Raises SetupError for a path without problems.
    """
    found = list[Path]()
    for path in paths:
        place = Path(path) if Path(path).exists() else folder() / path
        here = within(located(place)) if place.exists() else []
        if not here:
            raise SetupError(f"{path}: there is no task folder and no KernelBench file at or below it")
        found += here
    if not found:
        raise SetupError("name the files of problems, or folders that contain them")
    return list(dict.fromkeys(found))


def _order(place: Path) -> tuple[str, int, str]:
    """Sort `2_b.py` before `10_a.py`."""
    number = place.name.partition("_")[0]
    return str(place.parent), int(number) if number.isdecimal() else 0, place.name


def find(name: str, device: str = "cpu", compat: str = "intended") -> Problem:
    """Return a problem by name or path; a KernelBench file's may end with `@fp16` or `@bf16`, its precision.

    Raises SetupError, which lists the known names, if there is none.
    """
    bare, _, precision = name.rpartition("@") if "@" in Path(name).name else (name, "", "")
    for given in (folder() / bare, Path(bare)):
        place, own = located(given), _name(given)
        if (place / "task.yml").is_file() and not precision:
            return _of_one_name(taskfolder.load(place, device, compat, own))
        for file in (place, place.parent / f"{place.name}.py"):
            if file.suffix == ".py" and file.is_file():
                return _of_one_name(kernelbench.load(file, device, compat, own, precision or "fp32"))
    raise SetupError(f"unknown problem {name!r}; known: {', '.join(names())}, or the path of a task folder")


def _of_one_name(problem: Problem) -> Problem:
    """Return a problem. Raises SetupError if stores could not tell it from another one below `problems/`."""
    for other in names():
        if other != problem.name and slug(other) == problem.slug:
            raise SetupError(
                f"problems {problem.name} and {other} would have one name in stores, {problem.slug}: rename one of them"
            )
    return problem


def load(place: Path, device: str = "cpu", compat: str = "intended") -> Problem:
    """Return the problem of a task folder or a KernelBench file."""
    return find(str(located(place)), device, compat)


def located(place: Path) -> Path:
    """Return the absolute path of a file or folder. A link to a file stays one: DVC may link files into its cache."""
    return place.parent.resolve() / place.name if place.is_file() else place.resolve()


def _name(place: Path) -> str:
    """Return a problem's name: its path below `problems/`, else the name of its folder or file."""
    path, root = located(place), folder().resolve()
    path = path.with_suffix("") if path.suffix == ".py" else path
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name
