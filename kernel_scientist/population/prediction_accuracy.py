"""How accurate are hypotheses? Predicted against measured uplift, per model that made the prediction.

Only experiments count: seeds and tuned kernels have no predicted uplift.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.lineage import Population, score
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
    """Return predicted and measured uplift of all experiments of a campaign."""
    rows: list[UpliftPrediction] = []
    for trial in population:
        kernel = trial.kernel
        if kernel.experiment is None or kernel.tuned_from is not None:
            continue
        low, high = kernel.experiment.uplift
        measured = population.uplift(trial) if score(trial) and not trial.evaluation.by_model else None
        designer = kernel.authors.get("designer", Author.of(())).model
        rows.append(UpliftPrediction(kernel=kernel.name, designer=designer, low=low, high=high, measured=measured))
    return rows


def table(predictions: Sequence[UpliftPrediction]) -> list[dict[str, Any]]:
    """Return one row per designer.

    `within`: share of measured uplifts within the predicted range. `bias`: median of predicted (middle of the range)
    minus measured uplift, in percent of speed. `rank`: Spearman's correlation of predicted and measured uplift; None
    for fewer than four measurements or if all values of either are equal. `failed`: share of kernels without a time.
    """
    designers = sorted({p.designer for p in predictions})
    return [_row(designer, [p for p in predictions if p.designer == designer]) for designer in designers]


def _row(designer: str, predictions: Sequence[UpliftPrediction]) -> dict[str, Any]:
    timed = [p for p in predictions if p.measured is not None]
    predicted, measured = [p.middle for p in timed], [p.measured or 0.0 for p in timed]
    return {
        "designer": designer,
        "experiments": len(predictions),
        "failed": round(1 - len(timed) / len(predictions), 3),
        "within": round(sum(p.within for p in timed) / len(timed), 3) if timed else None,
        "predicted": _median(predicted),
        "measured": _median(measured),
        "bias": _median([a - b for a, b in zip(predicted, measured, strict=True)]),
        "rank": _rank_correlation(predicted, measured),
    }


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) < 4 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return round(statistics.correlation(_ranks(first), _ranks(second)), 3)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return each value's rank; equal values share their mean rank."""
    ordered = sorted(values)
    first = {v: ordered.index(v) for v in set(values)}
    return [first[v] + (ordered.count(v) - 1) / 2 for v in values]
