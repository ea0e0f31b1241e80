"""How accurate are hypotheses? Predicted against measured uplift, per model that made the prediction.

Only experiments count: seeds and tuned kernels have no predicted uplift.
"""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author


class UpliftPrediction(Record):
    """One hypothesis: predicted and measured uplift over the base, in percent of speed."""

    kernel: str
    designer: str
    low: float
    high: float
    measured: float | None = None
    """None: the kernel failed and has no time."""

    @property
    def middle(self) -> float:
        """Return the middle of the predicted range."""
        return (self.low + self.high) / 2

    @property
    def within(self) -> bool:
        """Whether the measured uplift lies within the predicted range."""
        return self.measured is not None and self.low <= self.measured <= self.high


def predictions(population: Population) -> list[UpliftPrediction]:
    """Return predicted and measured uplift of a campaign's experiments."""
    return [
        UpliftPrediction(
            kernel=trial.kernel.name,
            designer=trial.kernel.authors.get("designer", Author.of(())).model,
            low=experiment.uplift[0],
            high=experiment.uplift[1],
            measured=population.uplift(trial) if score(trial) and not trial.evaluation.by_model else None,
        )
        for trial in population
        if (experiment := trial.kernel.experiment) is not None and trial.kernel.tuned_from is None
    ]


def table(predictions: Sequence[UpliftPrediction]) -> list[dict[str, Any]]:
    """Return one row per designer.

    `within`: share of measured uplifts within the predicted range. `bias`: median of predicted (middle of the range)
    minus measured uplift, in percent of speed. `rank`: Spearman's correlation of predicted and measured uplift; None
    for fewer than four measurements or if all values of either are equal. `failed`: share of kernels without a time.
    """
    ordered = sorted(predictions, key=lambda p: p.designer)
    return [_row(designer, list(group)) for designer, group in itertools.groupby(ordered, lambda p: p.designer)]


def _row(designer: str, predictions: Sequence[UpliftPrediction]) -> dict[str, Any]:
    pairs = [(p.middle, p.measured) for p in predictions if p.measured is not None]
    predicted, measured = [middle for middle, _ in pairs], [measured for _, measured in pairs]
    return {
        "designer": designer,
        "experiments": len(predictions),
        "failed": round(1 - len(pairs) / len(predictions), 3),
        "within": round(sum(p.within for p in predictions) / len(pairs), 3) if pairs else None,
        "predicted": _median(predicted),
        "measured": _median(measured),
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
