"""Problems in the terminal: their list, and the description of one."""

from collections.abc import Iterator, Sequence

from kernel_scientist.records.problem_result import ProblemResult, ProblemRow
from kernel_scientist.report.output import Table, parts

COLUMNS = {
    "use": "use",
    "case": "case",
    "gflop": "GFLOP",
    "mbyte": "MB",
    "mi300x_floor_us": "floor on MI300X, us (predicted)",
}


def lines(rows: Sequence[ProblemRow]) -> Iterator[str]:
    """Yield the list of problems, each imported one with its source."""
    for row in rows:
        lacking = f" (needs {', '.join(row.needs)})" if row.needs else ""
        yield f"{row.problem:28} {row.about}{lacking}"
        if row.origin:
            yield f"{'':28} from {row.origin}"


def description(result: ProblemResult) -> Iterator[str | Table]:
    """Yield a problem's description; a table per profile."""
    told = result.model_dump(mode="json", exclude={"profiles", "origin"})
    yield from parts({name.replace("_", " "): value for name, value in told.items()})
    if result.origin:
        yield f"{'origin:':16} {result.origin}"
    for name, cases in result.profiles.items():
        yield Table(COLUMNS, [case.model_dump() for case in cases], f"profile {name}")
