"""Problems as records: the list of them with their sources, and the description of one."""

from collections.abc import Iterable
from pathlib import Path

from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems import (
    assumptions,
    find,
    folder,
    names,
    reference_kernels,
    requirements,
    taskfolder,
    within,
)
from kernel_scientist.problems.imports import provenance
from kernel_scientist.problems.kernelbench import is_named_so
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.problem_result import CaseWork, ImportOrigin, ProblemResult, ProblemRow
from kernel_scientist.records.yaml_text import read_mapping


def listed() -> list[ProblemRow]:
    """Return a row per problem; then the imports that are not in this folder. Nothing is executed."""
    rows = [_row(place, name) for place, name in zip(within(folder()), names(), strict=True)]
    absent = "imported, but not in this folder yet: run `dvc pull --allow-missing`"
    for one in provenance.every(folder()):
        if not one.is_here:
            name = one.content.relative_to(folder()).as_posix()
            rows.append(ProblemRow(problem=name, about=absent, origin=one.origin))
    return rows


def described(name: str) -> ProblemResult:
    """Return a problem's description, also of one that cannot be evaluated here.

    Raises SetupError for an unknown problem, and for one whose files are wrong.
    """
    try:
        problem = find(name)
        _require_sent(problem)
    except SetupError as error:
        return _unusable(name, error)
    own = Path(f"{folder() / name}.py")
    kernels = {use: reference_kernels.files(problem.name, use) for use in reference_kernels.USES}
    return ProblemResult(
        problem=problem.name,
        folder=str(problem.folder),
        description=problem.description.strip(),
        origin=_origin(own if own.is_file() else folder() / name),
        seeds=_names((problem.folder / "seeds").glob("*.py")),
        imported_seeds=_names(kernels["seed"]),
        imported_bars=_names(kernels["bar"]),
        assumed=tuple(problem.assumed),
        differs_from_leaderboard=tuple(_quirks(problem)),
        profiles={profile: tuple(_cases(problem, profile)) for profile in problem.profiles},
    )


def write_lab(name: str) -> None:
    """Write what was assumed about a problem to its lab.yml. Raises SetupError where there is nothing to write, or one
    already."""
    problem = find(name)
    if not problem.assumed or problem.adapter:
        raise SetupError(f"nothing was assumed about {problem.name} that a lab.yml could say")
    if around := provenance.of(problem.folder):
        raise SetupError(
            f"{problem.folder} lies in the import {around.content}, and DVC removes what is added to it: copy the "
            "import to another name in problems/, and write the lab.yml there"
        )
    file = problem.folder / "lab.yml"
    try:
        file.write_text(assumptions.lab(problem))
    except OSError as error:
        raise SetupError(f"cannot write {file}: {error.strerror}") from error


def _row(place: Path, name: str) -> ProblemRow:
    """Return a problem's row; a broken folder must not hide the others."""
    try:
        about, needs = _about(place)
    except taskfolder.MALFORMED as error:  # a value of another kind than is expected
        return _broken(place, name, str(taskfolder.malformed(place, error)))
    except SetupError as error:
        return _broken(place, name, str(error))
    return ProblemRow(problem=name, about=about, needs=tuple(needs), origin=_origin(place))


def _broken(place: Path, name: str, why: str) -> ProblemRow:
    return ProblemRow(problem=name, about=f"broken: {why}", is_broken=True, origin=_origin(place))


def _about(place: Path) -> tuple[str, Iterable[str]]:
    """Return the first line of a problem's description, and what this machine lacks for it."""
    if place.is_file():
        return f"KernelBench: {place.stem}", requirements.missing_packages({"kernelbench_model": place})
    task = read_mapping(place / "task.yml")
    text = str(task.get("description") or "").strip() or str(task.get("name", ""))
    needs = requirements.of_task(task, taskfolder.python_files(task, place), "cpu")
    return text.splitlines()[0] if text else "", needs


def _origin(place: Path) -> ImportOrigin | None:
    found = provenance.of(place)
    return found.origin if found else None


def _unusable(name: str, error: SetupError) -> ProblemResult:
    """Return the description of a problem that cannot be evaluated here. Raises the error of one that is unknown, or
    whose files are wrong."""
    places = (folder() / name, Path(name), folder() / f"{name}.py")
    place = next((p for p in places if (p / "task.yml").is_file() or (is_named_so(p) and p.is_file())), None)
    row = _row(place, name) if place else None
    if row is None or row.is_broken:
        raise error
    return ProblemResult(
        problem=name, folder="", description=row.about, origin=row.origin, needs=row.needs, unusable=str(error)
    )


def _require_sent(problem: Problem) -> None:
    from kernel_scientist.problems import admission  # torch takes seconds

    admission.require_sent(problem)


def _names(files: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(file.name for file in files))


def _quirks(problem: Problem) -> list[str]:
    """Return how the official harness treats a problem differently (compat=official does as it does)."""
    full = problem.profiles["full"]
    texts = {k for c in (*full.tests, *full.benchmarks) for k, v in c.sizes.items() if isinstance(v, bool)}
    found = [f"{name}: the leaderboard passes the text 'False', which is true" for name in sorted(texts)]
    if problem.ranking == "last" and len(full.benchmarks) > 1:
        found.append("ranked by the last benchmark alone there, by all of them here")
    if problem.ranking == "mean":
        found.append("ranked by the mean of the times there, by their geometric mean here")
    if problem.updates:
        found.append("inputs that are changed in place keep their changes from call to call there, and are new here")
    return found


def _cases(problem: Problem, profile: str) -> Iterable[CaseWork]:
    for use in ("tests", "benchmarks", "held_out"):
        for case in getattr(problem.profile(profile), use):
            work = problem.work(case)
            yield CaseWork(
                use=use,
                case=case.name,
                gflop=work.flops / 1e9 if work.flops or problem.work_is_least else None,
                mbyte=work.bytes / 1e6,
                mi300x_floor_us=roofline_us(work, MI300X),
            )
