"""How accurate are hypotheses? Predicted against measured uplift, per model that made the prediction.

Only experiments count: seeds and tuned kernels have no predicted uplift.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_scientist.population.entry import over_base, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import Speedup, Trial
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


class DesignerAccuracy(Record):
    """How accurate one designer's predictions were. What follows `pairs` is about those measurements."""

    designer: str
    experiments: int
    failed: float
    """Share of kernels without a time."""
    pairs: int
    """Uplifts that were measured in one run with the base and are resolved."""
    within: float | None
    """Share of these within the predicted range."""
    predicted: float | None
    """Median of the predicted ranges' middles, in percent of speed."""
    measured: str | None
    """Median of the measured uplifts; its interval is that of the bounds' medians."""
    bias: float | None
    """Median of predicted (middle of the range) minus measured uplift, in percent of speed."""
    rank: float | None
    """Spearman's correlation of predicted and measured uplift; None for fewer than four measurements or if all values
    of either are equal."""


def predictions(population: Population) -> list[UpliftPrediction]:
    """Return predicted and measured uplift of a campaign's experiments."""
    return [
        UpliftPrediction(
            kernel=trial.kernel.name,
            designer=_predictor(trial.kernel.authors).model,
            low=experiment.uplift[0],
            high=experiment.uplift[1],
            measured=100 * (pair.ratio - 1) if pair else None,
            interval=(100 * (pair.interval[0] - 1), 100 * (pair.interval[1] - 1)) if pair else None,
            failed=not score(trial),
        )
        for trial in population
        if (experiment := trial.kernel.experiment) is not None and trial.kernel.tuned_from is None
        for pair in (_resolved(trial),)
    ]


def _predictor(authors: Mapping[str, Author]) -> Author:
    """Return who predicted the uplift: the designer, or a writer that worked without one."""
    return authors.get("designer") or authors.get("writer") or Author.of(())


def _resolved(trial: Trial) -> Speedup | None:
    pair = over_base(trial)
    return pair if pair and pair.resolved else None


def by_designer(predictions: Sequence[UpliftPrediction]) -> list[DesignerAccuracy]:
    """Return how accurate each designer was, in the order of their names."""
    ordered = sorted(predictions, key=lambda p: p.designer)
    return [_accuracy(designer, list(group)) for designer, group in itertools.groupby(ordered, lambda p: p.designer)]


def _accuracy(designer: str, predictions: Sequence[UpliftPrediction]) -> DesignerAccuracy:
    pairs = [(p.middle, p.measured) for p in predictions if p.measured is not None]
    ends = [p.interval for p in predictions if p.measured is not None and p.interval]
    middle_of = [statistics.median(values) for values in zip(*ends, strict=True)]
    predicted, measured = [middle for middle, _ in pairs], [measured for _, measured in pairs]
    typical = None
    if measured:
        typical = percent(1 + statistics.median(measured) / 100, (1 + middle_of[0] / 100, 1 + middle_of[1] / 100))
    return DesignerAccuracy(
        designer=designer,
        experiments=len(predictions),
        failed=round(sum(p.failed for p in predictions) / len(predictions), 3),
        pairs=len(pairs),
        within=round(sum(p.within for p in predictions) / len(pairs), 3) if pairs else None,
        predicted=_median(predicted),
        measured=typical,
        bias=_median([middle - measured for middle, measured in pairs]),
        rank=rank_correlation(predicted, measured),
    )


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's correlation; None for fewer than four pairs, or when all values of either are equal."""
    if len(first) < 4 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy.stats import spearmanr  # it takes half a second, and only reports need it

    rank: Any = spearmanr(first, second)
    return round(float(rank.statistic), 3)
