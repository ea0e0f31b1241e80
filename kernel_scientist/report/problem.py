"""A problem, described."""

from typing import Any

from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.problems.taskfolder import Problem


def describe(problem: Problem) -> dict[str, Any]:
    """Return text, seeds and, per profile, cases with their work and their floor on MI300X (predicted from peaks)."""
    return {
        "problem": problem.name,
        "folder": str(problem.folder),
        "description": problem.description.strip(),
        "seeds": [f.name for f in sorted((problem.folder / "seeds").glob("*.py"))],
        **{f"profile {name}": _cases(problem, name) for name in problem.profiles},
    }


def _cases(problem: Problem, profile: str) -> list[dict[str, Any]]:
    chosen = problem.profile(profile)
    rows: list[dict[str, Any]] = []
    for use in ("tests", "benchmarks", "held_out"):
        for case in getattr(chosen, use):
            work = problem.work(case)
            rows.append(
                {
                    "use": use,
                    "case": case.name,
                    "gflop": work.flops / 1e9,
                    "mbyte": work.bytes / 1e6,
                    "mi300x_floor_us (predicted)": floor_us(work, MI300X),
                }
            )
    return rows
