"""How accurate are hypotheses? Predicted against measured uplift, per model that made the prediction.

Only experiments count: seeds and tuned kernels have no predicted uplift.
"""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.entry import over_base, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import percent
from kernel_scientist.records.kernel import Author


class UpliftPrediction(Record):
    """One hypothesis: predicted and measured uplift over the base, in percent of speed."""

    kernel: str
    designer: str
    low: float
    high: float
    measured: float | None = None
    """In one run with the base; None: the kernel failed, was not timed beside its base, or the gain is not resolved."""
    interval: tuple[float, float] | None = None
    """Interval of that, in percent."""
    failed: bool = False
    """Whether the kernel has no time."""

    @property
    def middle(self) -> float:
        """Return the middle of the predicted range."""
        return (self.low + self.high) / 2

    @property
    def within(self) -> bool:
        """Whether the measured uplift lies within the predicted range, as far as its interval tells."""
        if self.measured is None:
            return False
        low, high = self.interval or (self.measured, self.measured)
        return low <= self.high and self.low <= high


def predictions(population: Population) -> list[UpliftPrediction]:
    """Return predicted and measured uplift of a campaign's experiments."""
    return [
        UpliftPrediction(
            kernel=trial.kernel.name,
            designer=trial.kernel.authors.get("designer", Author.of(())).model,
            low=experiment.uplift[0],
            high=experiment.uplift[1],
            failed=not score(trial),
            **_measured(trial),
        )
        for trial in population
        if (experiment := trial.kernel.experiment) is not None and trial.kernel.tuned_from is None
    ]


def _measured(trial: Trial) -> dict[str, Any]:
    pair = over_base(trial)
    if pair is None or not pair.resolved:
        return {}
    low, high = pair.interval
    return {"measured": 100 * (pair.ratio - 1), "interval": (100 * (low - 1), 100 * (high - 1))}


def table(predictions: Sequence[UpliftPrediction]) -> list[dict[str, Any]]:
    """Return one row per designer.

    `pairs`: uplifts that were measured in one run with the base and are resolved; what follows is about them. `within`:
    share of those within the predicted range. `measured`: their median; its interval is that of the bounds' medians.
    `bias`: median of predicted (middle of the range) minus measured uplift, in percent of speed. `rank`: Spearman's
    correlation of predicted and measured uplift; None for fewer than four measurements or if all values of either are
    equal. `failed`: share of kernels without a time.
    """
    ordered = sorted(predictions, key=lambda p: p.designer)
    return [_row(designer, list(group)) for designer, group in itertools.groupby(ordered, lambda p: p.designer)]


def _row(designer: str, predictions: Sequence[UpliftPrediction]) -> dict[str, Any]:
    pairs = [(p.middle, p.measured) for p in predictions if p.measured is not None]
    ends = [p.interval for p in predictions if p.measured is not None and p.interval]
    middle_of = [statistics.median(values) for values in zip(*ends, strict=True)]
    predicted, measured = [middle for middle, _ in pairs], [measured for _, measured in pairs]
    return {
        "designer": designer,
        "experiments": len(predictions),
        "failed": round(sum(p.failed for p in predictions) / len(predictions), 3),
        "pairs": len(pairs),
        "within": round(sum(p.within for p in predictions) / len(pairs), 3) if pairs else None,
        "predicted": _median(predicted),
        "measured": percent(1 + statistics.median(measured) / 100, (1 + middle_of[0] / 100, 1 + middle_of[1] / 100))
        if measured
        else None,
        "bias": _median([middle - measured for middle, measured in pairs]),
        "rank": rank_correlation(predicted, measured),
    }


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's correlation; None for fewer than four pairs, or when all values of either are equal."""
    if len(first) < 4 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy.stats import spearmanr  # it takes half a second, and only reports need it

    rank: Any = spearmanr(first, second)
    return round(float(rank.statistic), 3)
