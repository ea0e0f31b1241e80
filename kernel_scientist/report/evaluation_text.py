"""The results of `evaluate`, `validate` and `optimize` as people read them in the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from kernel_scientist.records.evaluation import Counters, geomean
from kernel_scientist.report import resources
from kernel_scientist.report.tables import final_table, microseconds
from kernel_scientist.report.terminal import show, terminal, text

DETAILS = ("labels", "evidence", "sandbox", "clocks", "environment", "seconds")
"""Printed only on request, in this order; evidence also when the kernel failed."""


def show_evaluation(summary: dict[str, Any], verbose: bool) -> None:
    """Print verdict, time per case, speedup with interval and floor; with `verbose` everything."""
    console = terminal()
    reason = f": {summary['reason']}" if summary["reason"] else ""
    _line(console, f"{summary['verdict']}{reason}")
    if summary["cases"]:
        console.print(case_table(summary["cases"], summary["speedup"]))
    if summary["speedup"]:
        _line(console, speedup_line(summary["speedup"]))
    _details(console, summary, verbose)


def show_validation(summary: dict[str, Any], verbose: bool) -> None:
    """Print whether a kernel is confirmed, and its times on public and held-out cases."""
    console = terminal()
    _line(console, f"{'confirmed' if summary['confirmed'] else 'not confirmed'}: {summary['why']}")
    held_out = summary["held_out"]
    for title, cases, speedups in (
        ("public cases", summary["cases"], summary["speedups"]),
        ("held-out cases", held_out["cases"], held_out["speedups"]),
    ):
        if cases:
            against = next((s for s in speedups if s["against"] == "reference"), None)
            console.print(case_table(cases, against, title))
        for speedup in speedups:
            _line(console, speedup_line(speedup))
    _details(console, summary, verbose)


def show_campaign(summary: dict[str, Any]) -> None:
    """Print the result of a campaign."""
    console = terminal()
    _line(console, f"campaign {summary['campaign']}: {summary['kernels']} kernels, {summary['stopped']}")
    if summary["final"]:
        console.print(final_table(summary["final"]))
    _line(console, f"champion: {summary['champion_reason']}")
    _line(console, f"{'confirmed' if summary['confirmed'] else 'not confirmed'}: {summary['why']}")
    if summary["speedup"]:
        bounds = "[{:.3f}, {:.3f}]".format(*summary["interval"]) if summary["interval"] else "no interval"
        _line(console, f"speedup over the reference, confirmed: {summary['speedup']:.3f}x {bounds}")
    if predicted := summary["predicted"]:
        share = f"{100 * predicted['roofline_fraction']:.1f} % of the roofline"
        _line(console, f"predicted: {predicted['geomean_us']:.1f} us geomean, {share} ({predicted['by']})")
    show({"verdicts": summary["verdicts"], "usd": summary["usd"], "source": summary["source"]})


def case_table(cases: list[dict[str, Any]], speedup: dict[str, Any] | None, title: str = "") -> Table:
    """Return times per case; each ratio is the quotient of the two times in its row."""
    table = Table(title=title or None, title_justify="left")
    other = speedup["against"] if speedup else ""
    with_other = all(row["against_us"] for row in cases)
    for header in (
        "case",
        "time, us",
        "interval, us",
        *((f"{other}, us", "speedup") if with_other else ()),
        "floor, us",
    ):
        table.add_column(header, justify="left" if header == "case" else "right")
    for row in cases:
        low, high = row["interval_us"]
        cells = [row["case"], microseconds(row["time_us"]), f"[{microseconds(low)}, {microseconds(high)}]"]
        cells += _pair(row["time_us"], row["against_us"]) if with_other else []
        table.add_row(*cells, microseconds(row["floor_us"]))
    mean = ["geometric mean", microseconds(_mean(cases, "time_us")), ""]
    mean += _pair(_mean(cases, "time_us"), _mean(cases, "against_us")) if with_other else []
    table.add_row(*mean, "", style="bold")
    return table


def _pair(time_us: float, against_us: float) -> list[str]:
    return [microseconds(against_us), f"{against_us / time_us:.3f}x"]


def _mean(cases: Iterable[dict[str, Any]], key: str) -> float:
    return geomean([row[key] for row in cases])


def speedup_line(speedup: dict[str, Any]) -> str:
    """Return a speedup with its interval and the test's decision."""
    bounds = (
        "[{:.3f}, {:.3f}]".format(*speedup["interval"]) if speedup["interval"] else "too few blocks for an interval"
    )
    decision = "faster" if speedup["faster"] else "not shown to be faster"
    slower = f"; slower on {', '.join(speedup['slower_cases'])}" if speedup["slower_cases"] else ""
    test = f"margin {speedup['margin']:.3g}, {speedup['stages']} stage{'s' if speedup['stages'] > 1 else ''}"
    return f"speedup over {speedup['against']}: {speedup['ratio']:.3f}x {bounds}, {decision} ({test}){slower}"


def _details(console: Console, summary: dict[str, Any], verbose: bool) -> None:
    """Print a GPU kernel's code and counters, the evidence of a failure, and on request everything else."""
    for row in () if verbose or summary["verdict"] == "ok" else summary["evidence"]:
        _line(console, f"  {text(row)}")
    if verbose:
        show({key: summary[key] for key in DETAILS} | {"coverage": summary["coverage"]})
    if summary["compile"] and summary["compile"]["objects"]:
        for line in resources.evaluation(summary):
            _line(console, line)
    elif verbose and summary["compile"]:
        show({"compile": summary["compile"]})
    counters = summary["counters"]["kernels"] if summary["counters"] else []
    for line in resources.counter_lines([Counters.model_validate(row) for row in counters]):
        _line(console, line)


def _line(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False)
