"""The results of `evaluate` and `validate` from what the evaluator found (`records.results`)."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.hardware import counter_figures
from kernel_scientist.population.entry import roofline_fraction
from kernel_scientist.problems import published
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import (
    CONFIRMED,
    Confirmation,
    Evaluation,
    PairedTime,
    Speedup,
    Timing,
    geomean,
)
from kernel_scientist.records.gpu import Prediction
from kernel_scientist.records.kernel import REFERENCE, Kernel
from kernel_scientist.records.results import (
    BarResult,
    BesideResult,
    CaseResult,
    CountersResult,
    EvaluationResult,
    HeldOutResult,
    PairResult,
    PredictedCase,
    PredictedResult,
    SpeedupResult,
    ValidationResult,
)

DIGITS = 6
"""Significant digits of measured values."""
SHARED = ("verdict", "reason", "coverage", "labels", "evidence", "sandbox", "environment", "sampled")
"""Fields of an evaluation that its result has as they are."""


def of_evaluation(context: EvaluationContext, evaluation: Evaluation, against: str) -> EvaluationResult:
    """Return the result of `evaluate`; its speedup is over `against`."""
    return EvaluationResult(**_evaluated(context, evaluation, against))


def of_confirmation(context: EvaluationContext, kernel: Kernel, confirmation: Confirmation) -> ValidationResult:
    """Return the result of `validate`."""
    held_out = next((s.cases for s in confirmation.held_out_speedups if s.against == REFERENCE), {})
    return ValidationResult(
        **_evaluated(context, confirmation.evaluation, REFERENCE),
        status=confirmation.status,
        confirmed=confirmation.status == CONFIRMED,
        why=confirmation.reason,
        kernel=kernel.name,
        digest=kernel.digest,
        speedups=tuple(map(of_speedup, confirmation.evaluation.speedups)),
        held_out=HeldOutResult(
            cases=cases(confirmation.held_out, held_out),
            speedups=tuple(map(of_speedup, confirmation.held_out_speedups)),
        ),
        bars=bars(confirmation),
    )


def _evaluated(context: EvaluationContext, evaluation: Evaluation, against: str) -> dict[str, Any]:
    speedup, report = evaluation.speedup_over(against), evaluation.compile
    times = cases(evaluation.timings, speedup.cases if speedup else {})
    return {
        "problem": context.problem.name,
        "target": context.address.name,
        **{name: getattr(evaluation, name) for name in SHARED},
        "clocks": [rounded(one.model_dump()) for one in evaluation.clocks],
        "seconds": rounded(evaluation.seconds),
        "geomean_us": rounded(mean([one.time_us for one in times])),
        "cases": times,
        "speedup": of_speedup(speedup) if speedup else None,
        "predicted": predicted(evaluation, context.problem),
        "counters": counters(evaluation),
        "compile": report.model_copy(update={"log": ""}) if report else None,
    }


def cases(timings: Sequence[Timing], pairs: Mapping[str, PairedTime]) -> tuple[CaseResult, ...]:
    """Return one row per case; `pairs` holds the times of the other source in the same run."""
    rows = [(one.model_dump(exclude={"samples_us"}), pairs.get(one.case)) for one in timings]
    beside = [{"against_us": pair.against_us, "ratio_interval": pair.interval} if pair else {} for _, pair in rows]
    return tuple(CaseResult(**rounded(own | other)) for (own, _), other in zip(rows, beside, strict=True))


def of_speedup(speedup: Speedup) -> SpeedupResult:
    """Return a speedup with the times that its ratio is computed from; older records have no such times."""
    pairs = tuple(PairResult(**rounded({"case": case, **one.model_dump()})) for case, one in speedup.cases.items())
    quotients = [one.against_us / one.time_us for one in pairs]
    found = rounded(speedup.model_dump(exclude={"cases", "has_margin"})) | {"cases": pairs}
    return SpeedupResult(
        **found
        | {
            "ratio": geomean(quotients) if quotients else found["ratio"],
            "interval": found["interval"] if speedup.known else None,
            "interval_why": factors.why_unknown(speedup.interval, speedup.dropped),
            "resolved": speedup.resolved,
            "faster": speedup.faster,
        }
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None if there are no values."""
    return geomean(list(values)) if values else None


def beside(public: SpeedupResult | None, held_out: SpeedupResult | None) -> BesideResult:
    """Return a champion's times beside another source's. `public`, `held_out`: its speedups over that source."""
    shown, hidden = (one.cases if one else () for one in (public, held_out))
    return BesideResult(
        us=mean([one.against_us for one in shown]),
        champion_us=mean([one.time_us for one in shown]),
        ratio=public.ratio if public else None,
        interval=public.interval if public else None,
        interval_why=public.interval_why if public else factors.UNTIMED,
        held_out_us=mean([one.against_us for one in hidden]),
        held_out_ratio=held_out.ratio if held_out and hidden else None,
        held_out_interval=held_out.interval if held_out and hidden else None,
    )


def bars(confirmation: Confirmation) -> tuple[BarResult, ...]:
    """Return what stands beside a champion, others' kernels and torch.compile, with their times."""
    public = {s.against: of_speedup(s) for s in confirmation.evaluation.speedups}
    held_out = {s.against: of_speedup(s) for s in confirmation.held_out_speedups}
    return tuple(
        BarResult(
            kernel=bar.name,
            verdict=bar.verdict.value if bar.verdict else "not evaluated",
            reason=bar.reason,
            predicted_us=bar.predicted_us,
            **dict(beside(public.get(bar.name), held_out.get(bar.name))),
        )
        for bar in confirmation.bars
    )


def predicted(evaluation: Evaluation, problem: Problem) -> PredictedResult | None:
    """Return the performance model's predictions; None when there are none."""
    if not evaluation.predictions:
        return None
    first = evaluation.predictions[0]
    return PredictedResult(
        machine=first.machine,
        calibration=first.calibration,
        calibrated=first.calibrated or None,
        by=model_behind(evaluation.predictions),
        geomean_us=rounded(evaluation.predicted_us),
        roofline_fraction=rounded(roofline_fraction(evaluation)),
        cases=predicted_cases(evaluation.predictions, problem.published),
        coverage=evaluation.coverage,
    )


def predicted_cases(predictions: Sequence[Prediction], times: Sequence[PublishedTime]) -> tuple[PredictedCase, ...]:
    """Return one row per case, with the best published time on that GPU beside the predicted one, None without one."""
    known = published.best(published.on(times, predictions[0].machine)) if predictions else {}
    return tuple(
        PredictedCase(
            **{name: value for name, value in dict(p).items() if name not in ("machine", "calibration", "calibrated")},
            published_us=known[p.case].us if p.case in known else None,
            published=known[p.case].origin if p.case in known else "",
        )
        for p in predictions
    )


def model_behind(predictions: Sequence[Prediction]) -> str:
    """Return a text that names the model behind predictions and its calibration; empty without predictions."""
    if not predictions:
        return ""
    return f"model of {predictions[0].machine}, {predictions[0].basis}; predicted, not measured"


def counters(evaluation: Evaluation) -> CountersResult | None:
    """Return the GPU's hardware counters per kernel and in total; None when the kernel was not profiled."""
    if not evaluation.counters:
        return None
    total = counter_figures.total(evaluation.counters)
    return CountersResult(by=evaluation.counters[0].tool, total=total, kernels=evaluation.counters)


def rounded(value: Any) -> Any:
    """Return a value whose fractions have six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(field) for key, field in cast(dict[str, Any], value).items()}
    return [rounded(item) for item in cast(list[Any], value)] if isinstance(value, (list, tuple)) else value
