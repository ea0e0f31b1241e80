"""The JSON of `evaluate`, `validate` and `optimize`.

Every ratio is the geometric mean over the cases of the quotient of the two times printed with it: times are rounded to
six significant digits and the ratio is computed from the rounded times.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from kernel_scientist.campaign import champions
from kernel_scientist.population.entry import roofline_fraction
from kernel_scientist.problems import published
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.profile import metrics as figures
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import (
    CONFIRMED,
    NOT_CONFIRMED,
    Confirmation,
    Evaluation,
    PairedTime,
    Speedup,
    Timing,
    geomean,
)
from kernel_scientist.records.gpu import Prediction
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.report import curves, ranking

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign
    from kernel_scientist.campaign.evaluation_context import EvaluationContext

SUMMARY = "summary.json"
"""Artifact of a campaign's run: the JSON of `optimize`."""
MACHINE = ("machine", "gpu", "cores", "threads", "compiler", "torch", "system")
"""Fields of an evaluation's environment that name the machine, in the order in which they are shown."""
DIGITS = 6
"""Significant digits of measured values."""


def evaluation_summary(context: "EvaluationContext", evaluation: Evaluation, against: str) -> dict[str, Any]:
    """Return the JSON of `evaluate`."""
    speedup = evaluation.speedup_over(against)
    cases = case_rows(evaluation.timings, speedup.cases if speedup else {})
    fields = {"verdict", "reason", "coverage", "labels", "evidence", "sandbox", "clocks", "environment", "seconds"}
    return {
        "problem": context.problem.name,
        "target": context.target.name,
        **rounded(evaluation.model_dump(mode="json", include=fields)),
        "geomean_us": rounded(mean(cases, "time_us")),
        "cases": cases,
        "speedup": speedup_summary(speedup) if speedup else None,
        "predicted": predicted(evaluation, context.problem),
        "counters": counters(evaluation),
        "compile": evaluation.compile.model_dump(mode="json", exclude={"log"}) if evaluation.compile else None,
    }


def validation_summary(context: "EvaluationContext", kernel: Kernel, confirmation: Confirmation) -> dict[str, Any]:
    """Return the JSON of `validate`."""
    held_out = next((s.cases for s in confirmation.held_out_speedups if s.against == REFERENCE), {})
    return {
        **evaluation_summary(context, confirmation.evaluation, REFERENCE),
        "status": confirmation.status,
        "confirmed": confirmation.status == CONFIRMED,
        "why": confirmation.reason,
        "kernel": kernel.name,
        "digest": kernel.digest,
        "speedups": [speedup_summary(s) for s in confirmation.evaluation.speedups],
        "held_out": {
            "cases": case_rows(confirmation.held_out, held_out),
            "speedups": [speedup_summary(s) for s in confirmation.held_out_speedups],
        },
        "bars": bar_rows(confirmation),
    }


def campaign_summary(campaign: "Campaign", confirmation: Confirmation | None) -> dict[str, Any]:
    """Return the JSON of `optimize`. Its speedup is the confirmation's, over the reference."""
    best, problem = campaign.champion(), campaign.context.problem.name
    speedup = confirmation.evaluation.speedup_over(REFERENCE) if confirmation else None
    unknown = Verdict.COMPILED.value if ranking.unexecuted(campaign.population) else None
    none = {"ratio": None, "interval": None, "cases": [], "interval_why": _why_no_speedup(campaign, confirmation)}
    measured = speedup_summary(speedup) if speedup else none
    return {
        "campaign": campaign.name,
        "problem": problem,
        "target": campaign.context.target.name,
        "start": campaign.beginning.start.told(campaign.population),
        "champion": best.kernel.name if best else None,
        "champion_reason": ranking.reason(campaign.population, campaign.final),
        "final": ranking.final_rows(campaign.population, campaign.final),
        "verdict": confirmation.evaluation.verdict.value if confirmation else unknown,
        "status": confirmation.status if confirmation else NOT_CONFIRMED,
        "confirmed": bool(confirmation and confirmation.status == CONFIRMED),
        "why": confirmation.reason if confirmation else ranking.no_champion(campaign.population),
        "speedup": measured["ratio"],
        "interval": measured["interval"],
        "interval_why": measured["interval_why"],
        "cases": measured["cases"],
        "busy": confirmation.evaluation.busy if confirmation else "",
        "bars": bar_rows(confirmation) if confirmation else [],
        "predicted": predicted(best.evaluation, campaign.context.problem) if best else None,
        "kernels": len(campaign.population),
        "verdicts": campaign.population.verdicts(),
        "usd": rounded(campaign.llm_budget.usd),
        "tokens": campaign.llm_budget.tokens,
        "stopped": campaign.plan.over() or "nothing more to try",
        "mlflow": {"uri": campaign.store.uri, "run": campaign.run.run_id},
        "source": str(champions.of_campaign(problem, campaign.name) / champions.SOURCE) if best else None,
        "curve": curve(campaign),
    }


def _why_no_speedup(campaign: "Campaign", confirmation: Confirmation | None) -> str:
    """Return why a campaign's champion has no speedup over the reference."""
    if campaign.context.target.model is not None:
        return factors.PREDICTED
    return factors.UNTIMED if confirmation else "no kernel was confirmed"


def recorded_summary(campaign: "Campaign") -> dict[str, Any] | None:
    """Return the JSON of `optimize` as it was recorded, if no kernel was added since then; else None."""
    found = json.loads(campaign.store.text(campaign.run, SUMMARY) or "null")
    if found is None or found["kernels"] != len(campaign.population):
        return None
    why = campaign.plan.over() or "nothing more to try"
    place = champions.of_campaign(campaign.context.problem.name, campaign.name) / champions.SOURCE
    moved = {"source": str(place)} if found["source"] else {}
    return {**found, **moved, "stopped": f"{why}: no kernel was added, so this is the recorded result"}


def status(summary: Mapping[str, Any]) -> str:
    """Return what the confirmation in the JSON of `validate` or `optimize` came to; earlier versions have no status."""
    return summary.get("status") or (CONFIRMED if summary["confirmed"] else NOT_CONFIRMED)


def told(summary: Mapping[str, Any]) -> str:
    """Return what a confirmation came to, and why, as in `confirmed: faster than k00002 on public cases`."""
    came, why = status(summary), str(summary["why"])
    return why if why.startswith(came) else f"{came}: {why}"


def machine(environment: Mapping[str, str]) -> str:
    """Return what names the machine of an evaluation."""
    units = {name: f" {name}" for name in ("cores", "threads")}
    return ", ".join(f"{environment[name]}{units.get(name, '')}" for name in MACHINE if name in environment)


def case_rows(timings: Sequence[Timing], pairs: Mapping[str, PairedTime]) -> list[dict[str, Any]]:
    """Return one row per case; `pairs` holds the times of the other source in the same run."""
    return [
        rounded(
            {
                **one.model_dump(exclude={"samples_us"}),
                "against_us": pair.against_us if pair else None,
                "ratio_interval": pair.interval if pair else None,
            }
        )
        for one in timings
        for pair in [pairs.get(one.case)]
    ]


def speedup_summary(speedup: Speedup) -> dict[str, Any]:
    """Return a speedup with the times that its ratio is computed from; older records have no such times."""
    cases = [rounded({"case": case, **times.model_dump()}) for case, times in speedup.cases.items()]
    quotients = [row["against_us"] / row["time_us"] for row in cases]
    return {
        **rounded(speedup.model_dump(exclude={"cases"})),
        **({"ratio": geomean(quotients)} if quotients else {}),
        "interval": rounded(speedup.interval) if speedup.known else None,
        "interval_why": factors.why_unknown(speedup.interval, speedup.dropped),
        "resolved": speedup.resolved,
        "faster": speedup.faster,
        "cases": cases,
    }


def mean(cases: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Return the geometric mean of a field over cases; None if there are none."""
    return geomean([case[key] for case in cases]) if cases else None


def beside(public: dict[str, Any] | None, held_out: dict[str, Any] | None) -> dict[str, Any]:
    """Return times in us of a champion and another source, and their ratio: of one run, None if they were not timed.

    `public`, `held_out`: the champion's speedups over the other source; older ones do not say why there is no interval.
    """
    shown, hidden = (speedup["cases"] if speedup else [] for speedup in (public, held_out))
    return {
        "us": mean(shown, "against_us"),
        "champion_us": mean(shown, "time_us"),
        "ratio": public["ratio"] if public else None,
        "interval": public["interval"] if public else None,
        "interval_why": _why_no_interval(public) if public else factors.UNTIMED,
        "held_out_us": mean(hidden, "against_us"),
        "held_out_ratio": held_out["ratio"] if held_out and hidden else None,
        "held_out_interval": held_out["interval"] if held_out and hidden else None,
    }


def _why_no_interval(speedup: Mapping[str, Any]) -> str:
    return speedup.get("interval_why", factors.why_unknown(speedup["interval"]))


def bar_rows(confirmation: Confirmation) -> list[dict[str, Any]]:
    """Return a row for each bar: what stands beside a champion, others' kernels and torch.compile."""
    public = {s.against: speedup_summary(s) for s in confirmation.evaluation.speedups}
    held_out = {s.against: speedup_summary(s) for s in confirmation.held_out_speedups}
    return [
        {
            "kernel": bar.name,
            "verdict": bar.verdict.value if bar.verdict else "not evaluated",
            "reason": bar.reason,
            **beside(public.get(bar.name), held_out.get(bar.name)),
            "predicted_us": bar.predicted_us,
        }
        for bar in confirmation.bars
    ]


def predicted(evaluation: Evaluation, problem: Problem) -> dict[str, Any] | None:
    """Return the performance model's predictions; None when there are none."""
    if not evaluation.predictions:
        return None
    first = evaluation.predictions[0]
    return {
        "machine": first.machine,
        "calibration": first.calibration,
        "calibrated": first.calibrated or None,
        "by": model_behind(evaluation.predictions),
        "geomean_us": rounded(evaluation.predicted_us),
        "roofline_fraction": rounded(roofline_fraction(evaluation)),
        "cases": prediction_rows(evaluation.predictions, problem.published),
        "coverage": evaluation.coverage,
    }


def prediction_rows(predictions: Sequence[Prediction], times: Sequence[PublishedTime]) -> list[dict[str, Any]]:
    """Return one row per case, with the best published time on that GPU beside the predicted one, None without one."""
    known = published.best(published.on(times, predictions[0].machine)) if predictions else {}
    return [
        {
            **p.model_dump(mode="json", exclude={"machine", "calibration", "calibrated"}),
            "published_us": known[p.case].us if p.case in known else None,
            "published": known[p.case].origin if p.case in known else "",
        }
        for p in predictions
    ]


def model_behind(predictions: Sequence[Prediction]) -> str:
    """Return a text that names the model behind predictions and its calibration; empty without predictions."""
    if not predictions:
        return ""
    return f"model of {predictions[0].machine}, {predictions[0].basis}; predicted, not measured"


def counters(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the GPU's hardware counters per kernel and in total; None when the kernel was not profiled."""
    if not evaluation.counters:
        return None
    return {
        "by": evaluation.counters[0].tool,
        "total": figures.total(evaluation.counters).model_dump(),
        "kernels": [c.model_dump() for c in evaluation.counters],
    }


def curve(campaign: "Campaign") -> list[dict[str, Any]]:
    """Return each kernel's score and the incumbent's with their intervals, in the order of the names.

    A measured score is the speedup over the reference in the kernel's own run, None if that is not resolved.
    """
    population = campaign.population
    best = curves.of(population)
    rows: list[dict[str, Any]] = []
    for index, trial in enumerate(population, start=1):
        own, incumbent = curves.point(trial), best[index - 1]
        rows.append(
            {
                "index": index,
                "kernel": trial.kernel.name,
                "experiment": trial.kernel.title,
                "verdict": trial.evaluation.verdict.value,
                "score": "predicted" if trial.evaluation.by_model else "measured",
                "speedup": rounded(own.ratio) if own else None,
                "speedup_low": rounded(own.low) if own else None,
                "speedup_high": rounded(own.high) if own else None,
                "best": rounded(incumbent.ratio),
                "best_low": rounded(incumbent.low),
                "best_high": rounded(incumbent.high),
            }
        )
    return rows


def rounded(value: Any) -> Any:
    """Return a JSON value whose fractions have six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(field) for key, field in cast(dict[str, Any], value).items()}
    return [rounded(item) for item in cast(list[Any], value)] if isinstance(value, (list, tuple)) else value
