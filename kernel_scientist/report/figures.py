"""The few figures of a campaign that DVC compares (`dvc metrics diff`, `dvc exp show`), and the plot of its cases."""

from collections.abc import Sequence

from kernel_scientist.campaign.champions import STANDING
from kernel_scientist.campaign.results import rounded
from kernel_scientist.population import standings
from kernel_scientist.problems import published
from kernel_scientist.records.evaluation import CONFIRMED, Trial
from kernel_scientist.records.factors import is_known, is_resolved
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.results import ValidationResult
from kernel_scientist.report.output import csv_text
from kernel_scientist.tracking.access import RecordedCampaign


def of(recorded: RecordedCampaign, validation: ValidationResult | None) -> dict[str, float]:
    """Return a campaign's figures. `validation`: the result of `validate` of the champion, if there is one.

    `speedup` and `held_out_speedup` are over the reference, `over_seed` over the best seed; measured and predicted
    figures have different names. A factor is stated only with its interval, and if it is resolved. `confirmed` is 1
    only for a kernel that was confirmed to be faster than the best seed, so 0 for a seed that stays. What is not known
    is left out. Times are in the plot: those of different runs are not compared.
    """
    population, best = recorded.population, recorded.champion()
    figures: dict[str, float | None] = {}
    if best and best.evaluation.by_model:
        figures |= {"predicted_us": best.evaluation.predicted_us}
        figures |= {"predicted_roofline": population.entry(best.kernel.name).score}
    elif best and validation:
        figures |= _confirmed(validation)
    elif best:
        figures |= _unconfirmed(recorded, best)
    figures |= {"kernels": len(population), "usd": recorded.run.metrics.get("llm.usd", 0.0)}
    return {name: rounded(value) for name, value in figures.items() if value is not None}


def _unconfirmed(recorded: RecordedCampaign, best: Trial) -> dict[str, float]:
    """Return the figures of the final, or of the champion's own run if there was none."""
    final, name = recorded.final, best.kernel.name
    own = standings.recorded(best)
    pair = (final.speedup(name), final.interval(name)) if final and final.ranking() else (own.speedup, own.interval)
    return {**_factor("speedup", *pair), "confirmed": 0}


def _confirmed(validation: ValidationResult) -> dict[str, float]:
    others = {REFERENCE, STANDING, *(bar.kernel for bar in validation.bars)}
    seeds = [speedup for speedup in validation.speedups if speedup.against not in others]
    slowest = min(seeds, key=lambda speedup: speedup.ratio, default=None)
    pairs = {"speedup": validation.over(REFERENCE), "held_out_speedup": validation.held_out_over(REFERENCE)}
    known = {name: speedup for name, speedup in (pairs | {"over_seed": slowest}).items() if speedup}
    return {
        **{key: value for name, one in known.items() for key, value in _factor(name, one.ratio, one.interval).items()},
        "confirmed": int(validation.status == CONFIRMED),
    }


def _factor(name: str, ratio: float | None, interval: Sequence[float] | None) -> dict[str, float]:
    """Return a ratio, if it is resolved, and the ends of its interval; nothing without one."""
    if ratio is None or interval is None or not is_known(interval):
        return {}
    stated = {name: ratio} if is_resolved(interval) else {}
    return {**stated, f"{name}_low": interval[0], f"{name}_high": interval[1]}


def cases(recorded: RecordedCampaign) -> str:
    """Return the champion's times by case as CSV: a row per case and source, in us, measured or predicted."""
    best = recorded.champion()
    times, floors_us = case_times(recorded, best) if best else ({}, {})
    known = [(case, source) for case in times.get("champion", ()) for source in times if case in times[source]]
    rows = [(case, source, times[source][case]) for case, source in known]
    rows += [(case, "floor", us) for case, us in floors_us.items()]
    columns = ("bar", "case", "source", "us")
    return csv_text(columns, ((f"{case} {source}", case, source, rounded(us)) for case, source, us in rows))


def case_times(
    recorded: RecordedCampaign, best: Trial, name: str = "champion"
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the times of champion (as `name`), reference and best published kernel by case, and the cases' floors."""
    evaluation, known = best.evaluation, published.best(recorded.published)
    speedup, ours = evaluation.speedup_over(REFERENCE), evaluation.times_us
    pairs = speedup.cases if speedup else {}
    times = {
        name: ours | {case: pair.time_us for case, pair in pairs.items()},  # both of one run
        "reference": {case: pair.against_us for case, pair in pairs.items()},
        "best published": {case: known[case].us for case in ours if case in known},
    }
    of = evaluation.predictions if evaluation.by_model else evaluation.timings
    return {k: v for k, v in times.items() if v}, {one.case: one.floor_us for one in of if one.floor_us}
