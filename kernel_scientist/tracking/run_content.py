"""Tags, params and metrics of MLflow runs. A speedup is the quotient of the two times logged with it.

Measured metrics are rounded to what they mean: two digits of the interval's half-width. A factor is logged with the
ends of its interval (`_low`, `_high`), and not at all if it is not resolved (`records.factors`).

MLflow shows metrics in the order in which they were logged, params by name, and charts metrics with a slash in sections
of their own. So what decides is logged first under a plain name (speedup, geomean_us), and the rest is in groups.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel_scientist.compilers.source import KernelSource, SourceError
from kernel_scientist.hardware import counter_figures
from kernel_scientist.population.entry import over_base, roofline_fraction, score
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Speedup, Timing, Trial, geomean
from kernel_scientist.records.factors import significant
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.scientist.llm.response_cache import Spending

KIND, CAMPAIGN, KERNEL, SUITE = "kind", "campaign", "kernel", "suite"
PARENT = "mlflow.parentRunId"
TEXT = 5000
"""Most characters of text in a tag; MLflow truncates at 8000 without an error."""


def with_tags(given: Mapping[str, str]) -> str | None:
    """Return the filter of runs with these tags, in MLflow's language; None if no run can have been given them.

    The language has no text with both kinds of quotes, and no campaign is named so.
    """
    if any("'" in value and '"' in value for value in given.values()):
        return None
    return " and ".join(f"tags.{t} = '{v}'" if "'" not in v else f'tags.{t} = "{v}"' for t, v in given.items())


def spending(rows: Sequence[Spending]) -> dict[str, float]:
    """Return cost and number of model calls: in total, per role, per model, and per role and model.

    `llm.truncated`: calls whose stream ended within the reply, in total and per role. `llm.unreadable`: complete
    replies that could not be parsed, per role; `llm.unreadable_rate`: their share.
    """
    metrics: dict[str, float] = {"llm.truncated": sum(row.truncated for row in rows)}
    groups: dict[str, list[Spending]] = {"": list(rows)}
    for row in rows:
        for suffix in (f".{row.role}", f".{row.model}", f".{row.role}.{row.model}"):
            groups.setdefault(suffix, []).append(row)
    for role in {row.role for row in rows}:
        own = [row for row in rows if row.role == role]
        metrics[f"llm.truncated.{role}"] = sum(row.truncated for row in own)
        metrics[f"llm.unreadable.{role}"] = sum(row.unreadable for row in own)
    for suffix, group in groups.items():
        complete = sum(row.calls - row.truncated for row in group)
        metrics[f"llm.usd{suffix}"] = sum(row.usd for row in group)
        metrics[f"llm.tokens{suffix}"] = sum(row.tokens for row in group)
        metrics[f"llm.calls{suffix}"] = sum(row.calls for row in group)
        metrics[f"llm.unreadable_rate{suffix}"] = sum(row.unreadable for row in group) / complete if complete else 0.0
    return metrics


def tags(parent_id: str, campaign: str, trial: Trial, note: str) -> dict[str, str]:
    """Return the tags of a kernel's run: lineage, verdict, report, and its description `note`."""
    kernel, evaluation = trial.kernel, trial.evaluation
    tags = {
        KIND: "kernel",
        CAMPAIGN: campaign,
        PARENT: parent_id,
        KERNEL: kernel.name,
        "mlflow.runName": f"{kernel.name} {kernel.title}"[:200],
        "language": kernel.language,
        "verdict": evaluation.verdict.value,
        "score": "none" if not score(trial) else "predicted" if evaluation.by_model else "measured",
        "generation": str(kernel.generation),
        "digest": kernel.digest,
    }
    optional = {
        "reason": evaluation.reason,
        "report": kernel.report,
        "sandbox": " ".join(evaluation.sandbox),
        "coverage": evaluation.coverage,
        "busy": evaluation.busy,
        "calibration": next((f"{p.calibration}: {p.calibrated}" for p in evaluation.predictions), ""),
        "base": kernel.base,
        "reference": kernel.reference,
        "tuned_from": kernel.tuned_from,
        "hypothesis": kernel.experiment.hypothesis if kernel.experiment else "",
        "mlflow.note.content": note,
    }
    return {k: v[:TEXT] for k, v in (tags | {k: v for k, v in optional.items() if v}).items()}


def params(trial: Trial, problem: Problem) -> dict[str, str]:
    """Return the params of a kernel's run: origin, authors, predicted uplift, tunables."""
    kernel = trial.kernel
    params: dict[str, Any] = {"problem": problem.name, "target": problem.device, "language": kernel.language}
    params |= {"base": kernel.base or "-", "reference": kernel.reference or "-", "generation": kernel.generation}
    if kernel.experiment:
        low, high = kernel.experiment.uplift
        params |= {"experiment": kernel.experiment.title.split(":")[0], "innovation": kernel.experiment.innovation}
        params |= {"predicted_uplift_min": low, "predicted_uplift_max": high}
    else:
        params["experiment"] = "seed" if kernel.is_seed else "standing champion"
    params |= {f"model.{role}": author.model for role, author in kernel.authors.items()}
    params |= {f"prompt.{role}": author.prompt[:12] for role, author in kernel.authors.items() if author.prompt}
    try:
        params |= {f"tunable.{k}": v for k, v in KernelSource(kernel.source).tunables.items()}
    except SourceError:
        pass  # a file that is not Python has no tunables
    return {k: str(v) for k, v in params.items()}


def metrics(trial: Trial, population: Population) -> dict[str, float]:
    """Return the metrics of a kernel's run: times, code, resources, cost. `population` holds its base."""
    evaluation, calls = trial.evaluation, trial.kernel.llm_calls
    metrics = measured(trial, population) | predicted(trial, population)
    metrics |= {f"seconds/{step}": s for step, s in evaluation.seconds.items()}
    if evaluation.compile:
        metrics["seconds/compiler"] = evaluation.compile.seconds
        metrics |= {f"instructions/{k}": v for k, v in evaluation.compile.instructions.items()}
        metrics |= {"instructions/bytes": evaluation.compile.code_bytes} if evaluation.compile.code_bytes else {}
        metrics |= _resources(evaluation.compile)
    if calls:
        metrics |= {"llm/usd": sum(c.usd for c in calls), "llm/calls": len(calls)}
        metrics |= {"llm/tokens": sum(c.input_tokens + c.output_tokens for c in calls)}
        metrics |= {"llm/unreadable": sum(bool(c.fault) for c in calls), "llm/repairs": len(trial.kernel.attempts)}
    return metrics | counted(evaluation)


def measured(trial: Trial, population: Population) -> dict[str, float]:
    """Return the metrics of a kernel that was timed; none for others."""
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK or not evaluation.timings:
        return {}
    metrics = speedup_metrics(evaluation)
    fractions = [(t.floor_us / t.time_us, t) for t in evaluation.timings if t.floor_us]
    metrics |= {"roofline_fraction": _share([f for f, _ in fractions], [t for _, t in fractions])} if fractions else {}
    speedup, pair = evaluation.speedup_over(REFERENCE), over_base(trial)
    if speedup and speedup.resolved:
        low, high = map(math.log2, speedup.interval)
        metrics |= {"log2_speedup": significant(math.log2(speedup.ratio), low, high)}
    metrics |= factor_metrics("measured_uplift", pair, lambda ratio: 100 * (ratio - 1)) if pair else {}
    if score(trial):
        metrics["order_estimate"] = round(population.expected(trial), 4)
    metrics |= {f"time_us/{t.case}": significant(t.time_us, *t.interval_us) for t in evaluation.timings}
    for timing in evaluation.timings if speedup else ():
        if other := speedup and speedup.cases.get(timing.case):
            metrics[f"reference_us/{timing.case}"] = _alike(other.against_us, timing)
    return metrics


def factor_metrics(
    name: str, speedup: Speedup, scaled: Callable[[float], float] = lambda ratio: ratio
) -> dict[str, float]:
    """Return a factor and the ends of its interval, rounded; only the ends if the factor is not resolved."""
    if not speedup.known:
        return {}
    low, high = map(scaled, speedup.interval)
    values = {f"{name}_low": low, f"{name}_high": high} | ({name: scaled(speedup.ratio)} if speedup.resolved else {})
    return {key: significant(value, low, high) for key, value in values.items()}


def speedup_metrics(evaluation: Evaluation, prefix: str = "") -> dict[str, float]:
    """Return time, reference time and speedup, the quotient of the two."""
    speedup, timings = evaluation.speedup_over(REFERENCE), evaluation.timings
    found = factor_metrics(f"{prefix}speedup", speedup) if speedup else {}
    metrics = {key: value for key, value in found.items() if key == f"{prefix}speedup"}
    metrics[f"{prefix}geomean_us"] = _share([t.time_us for t in timings], timings) if timings else math.nan
    if speedup and speedup.cases:
        metrics[f"{prefix}reference_geomean_us"] = _share([speedup.against_us], timings)
    return metrics | found


def _share(values: Sequence[float], timings: Sequence[Timing]) -> float:
    """Return the geometric mean of values of some cases, rounded as the times of these cases allow."""
    value = geomean(list(values))
    low, high = (geomean([max(t.interval_us[end], 1e-9) / t.time_us for t in timings]) for end in range(2))
    return significant(value, value * low, value * high)


def _alike(value: float, timing: Timing) -> float:
    """Return the reference's time on a case with as many digits as the kernel's, whose interval is recorded."""
    low, high = (bound / timing.time_us for bound in timing.interval_us)
    return significant(value, value * low, value * high)


def progress(best: Trial | None) -> dict[str, float]:
    """Return the metrics of the incumbent for a campaign's curve; none without an incumbent."""
    if best is None:
        return {}
    if best.evaluation.by_model:
        predicted_us = best.evaluation.predicted_us or math.inf
        return {"predicted_best_roofline_fraction": score(best), "predicted_best_geomean_us": predicted_us}
    return speedup_metrics(best.evaluation, "best_")


def comparison_metrics(speedups: Sequence[Speedup], prefix: str) -> dict[str, float]:
    """Return one kernel's time, and per other kernel its time and the quotient of the two."""
    metrics: dict[str, float] = {}
    for speedup in (s for s in speedups if s.cases):
        low, high = (bound / speedup.ratio for bound in speedup.interval)
        us, against_us = (significant(v, v * low, v * high) for v in (speedup.time_us, speedup.against_us))
        metrics |= {f"{prefix}geomean_us": us, f"{prefix}geomean_us.{speedup.against}": against_us}
        metrics |= factor_metrics(f"{prefix}speedup_over_{speedup.against}", speedup)
    return metrics


def final_metrics(final: Final) -> dict[str, float]:
    """Return per finalist its time and its speedup over the reference in the final, with the interval's ends."""
    metrics = {f"final_geomean_us.{name}": final.geomean_us(name) for name in final.times_us}
    for name, speedup in final.speedups.items():
        found = factor_metrics("final_speedup", speedup)
        metrics |= {f"{key}.{name}": value for key, value in found.items()}
    return metrics


def predicted(trial: Trial, population: Population) -> dict[str, float]:
    """Return the performance model's predictions; their names differ from those of measurements.

    Those of a kernel that nobody found to be right are named so: it does not rank among the others.
    """
    evaluation = trial.evaluation
    if not evaluation.predictions:
        return {}
    kind = "predicted" if evaluation.verdict is Verdict.OK else "unverified_predicted"
    metrics = {f"{kind}_roofline_fraction": roofline_fraction(evaluation) or math.nan}
    metrics[f"{kind}_geomean_us"] = evaluation.predicted_us or math.nan
    metrics |= {f"{kind}_us/{p.case}": p.time_us for p in evaluation.predictions}
    ratio = population.predicted_gain(trial)
    return metrics if ratio is None else {**metrics, "predicted_uplift": 100 * (ratio - 1)}


def counted(evaluation: Evaluation) -> dict[str, float]:
    """Return the GPU's hardware counters, all cases together."""
    total = counter_figures.total(evaluation.counters).model_dump()
    stalls: dict[str, float] = total.pop("stalls")
    metrics = {f"profiler/{name}": value for name, value in total.items() if value is not None}
    return metrics | {f"profiler/stall.{reason}": value for reason, value in stalls.items()}


def _resources(report: CompileReport) -> dict[str, float]:
    """Return per resource the largest use among a GPU kernel's code objects, and their lowest occupancy."""
    names = ("vgpr", "agpr", "registers", "sgpr", "spills", "scratch_bytes", "lds_bytes")
    most = {f"gpu/{name}": float(max(getattr(o, name) for o in report.objects)) for name in names if report.objects}
    return most | ({"gpu/occupancy": float(min(o.occupancy for o in report.objects))} if report.objects else {})


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values under names with dots."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return out
