"""The JSON of `evaluate`, `validate` and `optimize`.

Every ratio is the geometric mean over the cases of the quotient of the two times printed with it: times are rounded to
six significant digits and the ratio is computed from the rounded times.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_scientist.evaluate.confirmation import Confirmation
from kernel_scientist.population.lineage import roofline_fraction, score
from kernel_scientist.profile import metrics as figures
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Clocks, Evaluation, PairedTime, Prediction, Speedup, Timing, geomean
from kernel_scientist.records.kernel import REFERENCE, Kernel
from kernel_scientist.report import ranking

if TYPE_CHECKING:
    from kernel_scientist.campaign.evaluation_context import EvaluationContext
    from kernel_scientist.campaign.state import Campaign

DIGITS = 6
"""Significant digits of times and intervals."""


def champion_folder(problem: str) -> Path:
    """Return the folder of a problem's champion."""
    return environment.root() / "champions" / problem


def evaluation_summary(context: "EvaluationContext", evaluation: Evaluation, against: str) -> dict[str, Any]:
    """Return the JSON of `evaluate`."""
    speedup = evaluation.speedup_over(against)
    cases = case_rows(evaluation.timings, speedup.cases if speedup else {})
    return {
        "problem": context.problem.name,
        "target": context.target.name,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "coverage": evaluation.coverage or None,
        "geomean_us": rounded(geomean([row["time_us"] for row in cases])) if cases else None,
        "cases": cases,
        "speedup": speedup_summary(speedup) if speedup else None,
        "labels": list(evaluation.labels),
        "evidence": list(evaluation.evidence),
        "sandbox": list(evaluation.sandbox),
        "clocks": [_clocks(c) for c in evaluation.clocks],
        "predicted": predicted(evaluation),
        "counters": counters(evaluation),
        "compile": evaluation.compile.model_dump(exclude={"log"}) if evaluation.compile else None,
        "environment": evaluation.environment,
        "seconds": evaluation.seconds,
    }


def validation_summary(context: "EvaluationContext", kernel: Kernel, confirmation: Confirmation) -> dict[str, Any]:
    """Return the JSON of `validate`."""
    held_out = next((s.cases for s in confirmation.held_out_speedups if s.against == REFERENCE), {})
    return {
        **evaluation_summary(context, confirmation.evaluation, REFERENCE),
        "confirmed": confirmation.confirmed,
        "why": confirmation.reason,
        "kernel": kernel.name,
        "digest": kernel.digest,
        "speedups": [speedup_summary(s) for s in confirmation.evaluation.speedups],
        "held_out": {
            "cases": case_rows(confirmation.held_out, held_out),
            "speedups": [speedup_summary(s) for s in confirmation.held_out_speedups],
        },
    }


def campaign_summary(campaign: "Campaign", confirmation: Confirmation | None) -> dict[str, Any]:
    """Return the JSON of `optimize`. Its speedup is the confirmation's, over the reference."""
    best = campaign.champion()
    speedup = confirmation.evaluation.speedup_over(REFERENCE) if confirmation else None
    measured = speedup_summary(speedup) if speedup else None
    return {
        "campaign": campaign.name,
        "problem": campaign.context.problem.name,
        "target": campaign.context.target.name,
        "champion": best.kernel.name if best else None,
        "champion_reason": ranking.reason(campaign.population, campaign.final),
        "final": ranking.final_rows(campaign.population, campaign.final),
        "confirmed": bool(confirmation and confirmation.confirmed),
        "why": confirmation.reason if confirmation else "no kernel was correct",
        "speedup": measured["ratio"] if measured else None,
        "interval": measured["interval"] if measured else None,
        "cases": measured["cases"] if measured else [],
        "predicted": predicted(best.evaluation) if best else None,
        "kernels": len(campaign.population),
        "verdicts": campaign.population.verdicts(),
        "usd": rounded(campaign.llm_budget.usd),
        "stopped": campaign.over() or "nothing more to try",
        "mlflow": {"uri": campaign.store.uri, "run": campaign.run.run_id},
        "source": str(champion_folder(campaign.context.problem.name) / "kernel.py") if best else None,
        "curve": curve(campaign),
    }


def case_rows(timings: Sequence[Timing], pairs: Mapping[str, PairedTime]) -> list[dict[str, Any]]:
    """Return one row per case; `pairs` holds the times of the other source in the same run."""
    return [
        {
            "case": timing.case,
            "time_us": rounded(timing.time_us),
            "interval_us": [rounded(x) for x in timing.interval_us],
            "floor_us": rounded(timing.floor_us),
            "against_us": rounded(pairs[timing.case].against_us) if timing.case in pairs else None,
        }
        for timing in timings
    ]


def speedup_summary(speedup: Speedup) -> dict[str, Any]:
    """Return a speedup with the times that its ratio is computed from; older records have no such times."""
    cases: list[dict[str, Any]] = [
        {"case": case, "time_us": rounded(times.time_us), "against_us": rounded(times.against_us)}
        for case, times in speedup.cases.items()
    ]
    quotients = [row["against_us"] / row["time_us"] for row in cases]
    return {
        "against": speedup.against,
        "ratio": geomean(quotients) if quotients else rounded(speedup.ratio),
        "interval": interval(speedup),
        "margin": rounded(speedup.margin),
        "faster": speedup.faster,
        "stages": speedup.stages,
        "slower_cases": list(speedup.slower_cases),
        "cases": cases,
    }


def interval(speedup: Speedup) -> list[float] | None:
    """Return the rounded bounds; None when there were too few blocks for an interval."""
    return [float(f"{x:.{DIGITS}g}") for x in speedup.interval] if speedup.resolved else None


def predicted(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the machine model's predictions; None when there are none."""
    if not evaluation.predictions:
        return None
    first = evaluation.predictions[0]
    return {
        "machine": first.machine,
        "calibrated": first.calibrated or None,
        "by": provenance(evaluation.predictions),
        "geomean_us": rounded(evaluation.predicted_us),
        "roofline_fraction": rounded(roofline_fraction(evaluation)),
        "cases": [p.model_dump(exclude={"machine", "calibrated"}) for p in evaluation.predictions],
        "coverage": evaluation.coverage,
    }


def counters(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the GPU's hardware counters per kernel and in total; None when the kernel was not profiled."""
    if not evaluation.counters:
        return None
    return {
        "by": evaluation.counters[0].tool,
        "total": figures.total(evaluation.counters).model_dump(),
        "kernels": [c.model_dump() for c in evaluation.counters],
    }


def provenance(predictions: Sequence[Prediction]) -> str:
    """Return a text that names the model behind predictions and its calibration."""
    if not predictions:
        return ""
    first = predictions[0]
    basis = f"calibrated on {first.calibrated}" if first.calibrated else "uncalibrated: no such GPU was available"
    return f"model of {first.machine}, {basis}; predicted, not measured"


def curve(campaign: "Campaign") -> list[dict[str, Any]]:
    """Return score and best score so far per kernel, in the order of their names."""
    rows: list[dict[str, Any]] = []
    best = 0.0
    for index, trial in enumerate(campaign.population, start=1):
        best = max(best, score(trial))
        rows.append(
            {
                "index": index,
                "kernel": trial.kernel.name,
                "experiment": trial.kernel.experiment.title if trial.kernel.experiment else "seed",
                "verdict": trial.evaluation.verdict.value,
                "score": "predicted" if trial.evaluation.by_model else "measured",
                "speedup": rounded(score(trial)) or None,
                "best": rounded(best),
            }
        )
    return rows


def _clocks(clocks: Clocks) -> dict[str, Any]:
    return {name: rounded(value) if isinstance(value, float) else value for name, value in clocks}


def rounded(value: float | None) -> float | None:
    """Return a value with six significant digits."""
    return None if value is None else float(f"{value:.{DIGITS}g}")
