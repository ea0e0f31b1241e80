"""The profile of one kernel as text."""

from collections.abc import Iterator

from kernel_scientist.records import sampled
from kernel_scientist.records.evaluation import COUNTERS
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import EvaluationResult
from kernel_scientist.report import tables
from kernel_scientist.report.output import Table


def profile(result: EvaluationResult, verbose: bool) -> Iterator[str | Table]:
    """Yield what `evaluation` does, and where the calls' time goes, or why that is not known."""
    yield from tables.evaluation(result, verbose)
    for one in result.sampled:
        yield from sampled.table(one)
    if result.verdict is Verdict.OK and not result.sampled and COUNTERS in result.environment:
        yield f"profiler: {result.environment[COUNTERS]}"
