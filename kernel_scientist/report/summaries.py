"""What leaves the laboratory: the command line's JSON, and the files DVC tracks."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_scientist.compile.source import leaderboard
from kernel_scientist.evaluate.confirmation import Confirmation
from kernel_scientist.population.lineage import Population, roofline_fraction, score
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.profile import metrics as figures
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Clocks, Evaluation, Prediction, Speedup, Timing
from kernel_scientist.records.kernel import REFERENCE, Kernel

if TYPE_CHECKING:
    from kernel_scientist.campaign.evaluation_context import EvaluationContext
    from kernel_scientist.campaign.state import Campaign

DIGITS = 4


def champion_folder(problem: str) -> Path:
    """Return where a problem's champion is exported to."""
    return environment.root() / "champions" / problem


def reports_folder() -> Path:
    """Return where figures and pages are written."""
    return environment.root() / "reports"


def evaluation_summary(lab: "EvaluationContext", evaluation: Evaluation, against: str) -> dict[str, Any]:
    """Return the JSON of `evaluate`."""
    speedup = evaluation.speedup_over(against)
    return {
        "problem": lab.problem.name,
        "target": lab.target.name,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "coverage": evaluation.coverage or None,
        "geomean_us": _round(evaluation.geomean_us),
        "cases": [_case(t) for t in evaluation.timings],
        "speedup": _speedup(speedup) if speedup else None,
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


def validation_summary(lab: "EvaluationContext", kernel: Kernel, confirmation: Confirmation) -> dict[str, Any]:
    """Return the JSON of `validate`."""
    return {
        **evaluation_summary(lab, confirmation.evaluation, REFERENCE),
        "confirmed": confirmation.confirmed,
        "why": confirmation.reason,
        "kernel": kernel.name,
        "digest": kernel.digest,
        "speedups": [_speedup(s) for s in confirmation.evaluation.speedups],
        "held_out": {
            "cases": [_case(t) for t in confirmation.held_out],
            "speedups": [_speedup(s) for s in confirmation.held_out_speedups],
        },
        "contestants_us": {
            who: {case: _round(t) for case, t in times.items()} for who, times in confirmation.others_us.items()
        },
    }


def campaign_summary(campaign: "Campaign", confirmation: Confirmation | None) -> dict[str, Any]:
    """Return the JSON of `optimize`: the published speedup is the confirmation's, over the reference."""
    best = campaign.best()
    speedup = confirmation.evaluation.speedup_over(REFERENCE) if confirmation else None
    return {
        "campaign": campaign.name,
        "problem": campaign.lab.problem.name,
        "target": campaign.lab.target.name,
        "champion": best.kernel.name if best else None,
        "confirmed": bool(confirmation and confirmation.confirmed),
        "why": confirmation.reason if confirmation else "no kernel was right",
        "speedup": _round(speedup.ratio) if speedup else None,
        "interval": interval(speedup) if speedup else None,
        "predicted": predicted(best.evaluation) if best else None,
        "kernels": len(campaign.population),
        "verdicts": campaign.population.verdicts(),
        "usd": _round(campaign.ledger.usd),
        "stopped": campaign.over() or "nothing more to try",
        "mlflow": {"uri": campaign.notebook.uri, "run": campaign.run.run_id},
        "source": str(champion_folder(campaign.lab.problem.name) / "kernel.py") if best else None,
        "curve": curve(campaign),
    }


def predicted(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what a machine model says of a kernel; None where it was not asked."""
    if not evaluation.predictions:
        return None
    first = evaluation.predictions[0]
    return {
        "machine": first.machine,
        "calibrated": first.calibrated or None,
        "by": provenance(evaluation.predictions),
        "geomean_us": _round(evaluation.predicted_us),
        "roofline_fraction": _round(roofline_fraction(evaluation)),
        "cases": [p.model_dump(exclude={"machine", "calibrated"}) for p in evaluation.predictions],
        "coverage": evaluation.coverage,
    }


def counters(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what a GPU's counters say of a kernel, all of it and in sum; None where nothing was counted."""
    if not evaluation.counters:
        return None
    return {
        "by": evaluation.counters[0].tool,
        "total": figures.total(evaluation.counters).model_dump(),
        "kernels": [c.model_dump() for c in evaluation.counters],
    }


def provenance(predictions: Sequence[Prediction]) -> str:
    """Return by what predictions were made, in words."""
    if not predictions:
        return ""
    first = predictions[0]
    basis = f"calibrated on {first.calibrated}" if first.calibrated else "uncalibrated: no such GPU was at hand"
    return f"model of {first.machine}, {basis}; predicted, not measured"


def curve(campaign: "Campaign") -> list[dict[str, Any]]:
    """Return speed (measured, or what a model predicts of the roofline's) and best so far per kernel, in order."""
    out: list[dict[str, Any]] = []
    best = 0.0
    for index, trial in enumerate(campaign.population, start=1):
        best = max(best, score(trial))
        title = trial.kernel.experiment.title if trial.kernel.experiment else "seed"
        out.append(
            {
                "index": index,
                "kernel": trial.kernel.name,
                "experiment": title,
                "verdict": trial.evaluation.verdict.value,
                "scored_by": "model" if trial.evaluation.by_model else "clock",
                "speedup": _round(score(trial)) or None,
                "best": _round(best),
            }
        )
    return out


def confirmation(campaign: "Campaign", confirmation: Confirmation) -> None:
    """Write the best kernel's source and card where DVC tracks them, and the confirmation into the notebook."""
    best = campaign.best()
    assert best is not None
    folder = champion_folder(campaign.lab.problem.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.py").write_text(submission(best.kernel, campaign.lab.problem))
    experiment = best.kernel.experiment
    card = {
        "problem": campaign.lab.problem.name,
        "kernel": best.kernel.name,
        "campaign": campaign.name,
        "digest": best.kernel.digest,
        "confirmed": confirmation.confirmed,
        "why": confirmation.reason,
        "predicted": predicted(best.evaluation),
        "lineage": lineage(campaign.population, best.kernel),
        "experiment": experiment.title if experiment else "seed",
    }
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    metrics = {f"confirmed_speedup_over_{s.against}": s.ratio for s in confirmation.evaluation.speedups}
    metrics |= {f"held_out_speedup_over_{s.against}": s.ratio for s in confirmation.held_out_speedups}
    campaign.notebook.log_confirmation(campaign.run, confirmation.evaluation, metrics)


def submission(kernel: Kernel, problem: Problem) -> str:
    """Return a kernel's file; a GPU kernel's begins with the lines by which a leaderboard knows where it belongs."""
    if kernel.language == "cpp" or leaderboard(kernel.source):
        return kernel.source
    return problem.leaderboard.header() + kernel.source


def lineage(population: Population, kernel: Kernel) -> list[str]:
    """Return the experiments that led to a kernel, seed first."""
    steps: list[str] = []
    at: Kernel | None = kernel
    while at is not None:
        steps.append(f"{at.name} {at.experiment.title if at.experiment else at.report}")
        at = population.get(at.base).kernel if at.base else None
    return steps[::-1]


def _case(timing: Timing) -> dict[str, Any]:
    return {
        "case": timing.case,
        "time_us": _round(timing.time_us),
        "interval_us": [_round(x) for x in timing.interval_us],
        "floor_us": _round(timing.floor_us),
    }


def _clocks(clocks: Clocks) -> dict[str, Any]:
    return {name: _round(value) if isinstance(value, float) else value for name, value in clocks}


def _speedup(speedup: Speedup) -> dict[str, Any]:
    return {
        "against": speedup.against,
        "ratio": _round(speedup.ratio),
        "interval": interval(speedup),
        "seen": [round(x, DIGITS) for x in speedup.seen] if speedup.seen and speedup.resolved else None,
        "resolved": speedup.resolved,
        "faster": speedup.faster,
        "margin": _round(speedup.margin),
        "looks": speedup.looks,
        "slower_cases": list(speedup.slower_cases),
        "cases": {case: _round(r) for case, r in speedup.cases.items()},
        "beside_us": {case: _round(us) for case, us in speedup.beside_us.items()},
    }


def interval(speedup: Speedup) -> list[float] | None:
    """Return the bounds, rounded; None where there were too few blocks to say anything."""
    return [round(x, DIGITS) for x in speedup.interval] if speedup.resolved else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
