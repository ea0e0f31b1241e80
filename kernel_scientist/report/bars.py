"""Bars, what stands beside a champion (others' kernels, torch.compile): rows for JSON, tables for terminal and page.

The champion's time and the bar's time in a row come from the same run, and the ratio is their quotient.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.records.evaluation import Bar, geomean
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.report.output import Table

MEASURED = {
    "kernel": "bar",
    "us": "public, us",
    "champion_us": "champion, us",
    "ratio": "champion is faster by",
    "interval": "interval",
    "held_out_us": "held-out, us",
    "held_out_ratio": "champion is faster by",
}
PREDICTED = {"kernel": "bar", "predicted_us": "predicted, us"}


def row(bar: Bar, public: dict[str, Any] | None, held_out: dict[str, Any] | None) -> dict[str, Any]:
    """Return a bar as JSON. `public`, `held_out`: the champion's speedups over it; None if it was not timed."""
    return {
        "kernel": bar.name,
        "verdict": bar.verdict.value if bar.verdict else "not evaluated",
        "reason": bar.reason,
        "us": _mean(public, "against_us"),
        "champion_us": _mean(public, "time_us"),
        "ratio": public["ratio"] if public else None,
        "interval": public["interval"] if public else None,
        "held_out_us": _mean(held_out, "against_us"),
        "held_out_ratio": held_out["ratio"] if held_out and held_out["cases"] else None,
        "predicted_us": bar.predicted_us,
    }


def _mean(speedup: dict[str, Any] | None, key: str) -> float | None:
    return geomean([case[key] for case in speedup["cases"]]) if speedup and speedup["cases"] else None


def table(rows: Sequence[dict[str, Any]]) -> Table | None:
    """Return the bars that were timed or predicted; None if there are none."""
    if measured := [one for one in rows if one["us"] is not None]:
        return Table(MEASURED, measured, "bars, timed in one run with the champion")
    predicted = [one for one in rows if one["predicted_us"] is not None]
    return Table(PREDICTED, predicted, "bars, predicted") if predicted else None


def failures(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a sentence about each bar that has no time."""
    failed = [one for one in rows if one["us"] is None and one["predicted_us"] is None]
    return [f"bar {one['kernel']} has no time: {_why(one)}" for one in failed]


def _why(one: dict[str, Any]) -> str:
    if one["verdict"] == Verdict.OK.value:
        return one["reason"] or "the champion itself was not timed"
    return f"{one['verdict']}: {one['reason']}"


def shown(rows: Sequence[dict[str, Any]]) -> Iterator[str | Table]:
    """Yield the bars as a table, and a line for each that has no time."""
    if (found := table(rows)) is not None:
        yield found
    yield from failures(rows)
