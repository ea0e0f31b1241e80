"""Reports about a problem: its description, and the times of its reference and seeds."""

from pathlib import Path
from typing import Any

from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems import assumptions, find, folder, names, requirements, taskfolder, within
from kernel_scientist.problems.imports import provenance
from kernel_scientist.problems.kernelbench import is_named_so
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import read_mapping
from kernel_scientist.report.output import write

BROKEN = "broken: "
"""Beginning of the line of a problem whose files are wrong."""


def overview() -> list[dict[str, Any]]:
    """Return each problem's name, first line, and what it needs that this machine lacks. Nothing is executed."""
    return [_safe_line(place, name) for place, name in zip(within(folder()), names(), strict=True)]


def _safe_line(place: Path, name: str) -> dict[str, Any]:
    """Return a problem's line; a broken folder must not hide the others."""
    try:
        return _line(place, name)
    except taskfolder.MALFORMED as error:  # a value of another kind than is expected
        return {"problem": name, "about": f"{BROKEN}{taskfolder.malformed(place, error)}", "needs": []}
    except SetupError as error:
        return {"problem": name, "about": f"{BROKEN}{error}", "needs": []}


def is_broken(line: dict[str, Any]) -> bool:
    """Whether a problem's line says that its files are wrong, not that something is missing here."""
    return str(line["about"]).startswith(BROKEN)


def _line(place: Path, name: str) -> dict[str, Any]:
    if place.is_file():
        needs = requirements.missing_packages({"kernelbench_model": place})
        return {"problem": name, "about": f"KernelBench: {place.stem}", "needs": list(needs)}
    task = read_mapping(place / "task.yml")
    text = str(task.get("description") or "").strip() or str(task.get("name", ""))
    needs = requirements.of_task(task, taskfolder.python_files(task, place), "cpu")
    return {"problem": name, "about": text.splitlines()[0] if text else "", "needs": list(needs)}


def described(name: str, write_lab: bool = False) -> dict[str, Any]:
    """Return a problem's description, also of one that cannot be evaluated here.

    write_lab: write what was assumed to its lab.yml. Raises SetupError if there is one already.
    """
    try:
        problem = find(name)
        _require_sent(problem)
    except SetupError as error:
        places = (folder() / name, Path(name), folder() / f"{name}.py")
        place = next((p for p in places if (p / "task.yml").is_file() or (is_named_so(p) and p.is_file())), None)
        if place is None:
            raise
        line = _safe_line(place, name)
        if is_broken(line):
            raise
        return {**line, "reason": str(error)}
    found = describe(problem)
    if write_lab:
        if not problem.assumed or problem.adapter:
            raise SetupError(f"nothing was assumed about {problem.name} that a lab.yml could say")
        if around := provenance.of(problem.folder):
            raise SetupError(
                f"{problem.folder} lies in the import {around.content}, and DVC removes what is added to it: copy the "
                "import to another name in problems/, and write the lab.yml there"
            )
        write(problem.folder / "lab.yml", assumptions.lab(problem))
    return found


def _require_sent(problem: Problem) -> None:
    from kernel_scientist.problems import admission  # torch takes seconds

    admission.require_sent(problem)


def describe(problem: Problem) -> dict[str, Any]:
    """Return text, seeds and, per profile, cases with their work and their roofline floor on MI300X (predicted)."""
    return {
        "problem": problem.name,
        "folder": str(problem.folder),
        "description": problem.description.strip(),
        "seeds": [f.name for f in sorted((problem.folder / "seeds").glob("*.py"))],
        **({"assumed": list(problem.assumed)} if problem.assumed else {}),
        **({"differs from the leaderboard": quirks} if (quirks := _quirks(problem)) else {}),
        **{f"profile {name}": _cases(problem, name) for name in problem.profiles},
    }


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


def _cases(problem: Problem, profile: str) -> list[dict[str, Any]]:
    cases = [(use, c) for use in ("tests", "benchmarks", "held_out") for c in getattr(problem.profile(profile), use)]
    return [
        {
            "use": use,
            "case": case.name,
            "gflop": work.flops / 1e9 if work.flops or problem.work_is_least else None,
            "mbyte": work.bytes / 1e6,
            "mi300x_floor_us (predicted)": roofline_us(work, MI300X),
        }
        for use, case in cases
        for work in (problem.work(case),)
    ]
