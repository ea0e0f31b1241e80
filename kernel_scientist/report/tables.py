"""Tables of a campaign for terminal and page. A ratio is the quotient of the times in its row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from kernel_scientist.population.lineage import score
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Trial, geomean
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.report import ranking, summaries
from kernel_scientist.report.terminal import terminal
from kernel_scientist.tracking.access import RecordedCampaign

FINAL = {
    "rank": "rank",
    "kernel": "kernel",
    "us": "final, us",
    "reference_us": "reference, us",
    "speedup": "speedup",
    "recorded_us": "own run, us",
    "recorded_reference_us": "reference, us",
    "recorded_speedup": "speedup",
}
CONFIRMED = {
    "role": "",
    "kernel": "kernel",
    "us": "public, us",
    "ratio": "champion is faster by",
    "interval": "interval",
    "held_out_us": "held-out, us",
    "held_out": "champion is faster by",
}
"""Columns by the key of a row."""


def microseconds(us: float | None) -> str:
    """Return a time with five significant digits, so that quotients of two times match the printed ratio."""
    if not us:
        return ""
    return f"{us:.5g}" if us < 1e5 else f"{us:.0f}"


def score_text(value: float, by_model: bool) -> str:
    """Return a score: a speedup over the reference, or a predicted share of the roofline's speed."""
    return f"{100 * value:.3g} %" if by_model else f"{value:.2f}x"


def speed(trial: Trial) -> str:
    """Return a kernel's recorded score; empty without one."""
    return score_text(score(trial), trial.evaluation.by_model) if score(trial) else ""


def final_rows(ranked: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the rows of `ranking.final_rows` as text."""
    return [
        {
            "rank": str(row["rank"]),
            "kernel": row["kernel"],
            **_times(row["geomean_us"], row["reference_us"], row["speedup"]),
            **_times(**row["recorded"], prefix="recorded_"),
        }
        for row in ranked
    ]


def _times(
    geomean_us: float | None, reference_us: float | None, speedup: float | None, prefix: str = ""
) -> dict[str, str]:
    return {
        f"{prefix}us": microseconds(geomean_us),
        f"{prefix}reference_us": microseconds(reference_us),
        f"{prefix}speedup": f"{speedup:.2f}x" if speedup else "",
    }


def confirmed_rows(validation: dict[str, Any], champion: str) -> list[dict[str, str]]:
    """Return the sources of a validation (reference, seeds from slow to fast, champion) with their times."""
    held_out = {s["against"]: s for s in validation["held_out"]["speedups"]}
    others = [
        {
            "role": "reference" if speedup["against"] == REFERENCE else "seed",
            "kernel": "PyTorch" if speedup["against"] == REFERENCE else speedup["against"],
            "us": microseconds(_mean(speedup, "against_us")),
            "ratio": f"{speedup['ratio']:.2f}x",
            "interval": "[{:.2f}, {:.2f}]".format(*speedup["interval"]) if speedup["interval"] else "",
            "held_out_us": microseconds(_mean(held_out[speedup["against"]], "against_us")),
            "held_out": f"{held_out[speedup['against']]['ratio']:.2f}x",
        }
        for speedup in sorted(validation["speedups"], key=_order)
    ]
    if others[-1]["role"] == "seed":
        others[-1]["role"] = "best seed"
    first = validation["speedups"][0]
    winner = {
        "role": "champion",
        "kernel": champion,
        "us": microseconds(_mean(first, "time_us")),
        "held_out_us": microseconds(_mean(held_out[first["against"]], "time_us")),
    }
    return [*others, {key: winner.get(key, "") for key in CONFIRMED}]


def _order(speedup: dict[str, Any]) -> tuple[bool, float]:
    return speedup["against"] != REFERENCE, -_mean(speedup, "against_us")


def _mean(speedup: dict[str, Any], key: str) -> float:
    return geomean([row[key] for row in speedup["cases"]])


def table(title: str, columns: dict[str, str], rows: list[dict[str, str]], marked: str) -> Table:
    """Return a table; the row of the kernel `marked` is highlighted."""
    result = Table(title=title, title_justify="left")
    for key, header in columns.items():
        result.add_column(header, justify="left" if key in ("role", "kernel") else "right")
    for row in rows:
        result.add_row(*(row[key] for key in columns), style="bold green" if row["kernel"] == marked else "")
    return result


def final_table(ranked: Sequence[dict[str, Any]]) -> Table:
    """Return the table of the final from the rows of `ranking.final_rows`; its first row is the champion."""
    return table("final: all finalists timed in one run", FINAL, final_rows(ranked), ranked[0]["kernel"])


def print_report(recorded: RecordedCampaign, validation: dict[str, Any] | None, page: Path) -> None:
    """Print confirmation, final and files of a campaign."""
    console, best = terminal(), recorded.champion()
    champion = best.kernel.name if best else ""
    if validation:
        title = f"{recorded.problem}: confirmed in fresh processes, geometric means over the cases"
        console.print(table(title, CONFIRMED, confirmed_rows(validation, champion), champion))
        confirmed = "yes" if validation["confirmed"] else "no"
        console.print(f"confirmed: {confirmed}, {validation['why']}", highlight=False)
    if ranked := ranking.final_rows(recorded.population, recorded.final):
        console.print(final_table(ranked))
    console.print(f"champion   {ranking.reason(recorded.population, recorded.final)}", highlight=False)
    root = environment.root()
    for name, path in (("source", summaries.champion_folder(recorded.problem) / "kernel.py"), ("report", page)):
        console.print(f"{name:10} {path.relative_to(root) if path.is_relative_to(root) else path}", highlight=False)
    console.print(
        "UIs        make ui   (Prefect at http://127.0.0.1:4200, MLflow at http://127.0.0.1:5000)", highlight=False
    )
