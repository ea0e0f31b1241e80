"""Do predictions hold? What a hypothesis promised against what was measured, per model that made it.

Only experiments count: a seed promised nothing, and a tuner's choice is no hypothesis.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Author


class Prediction(Record):
    """One hypothesis: promised and measured uplift, in percent of speed."""

    kernel: str
    designer: str
    low: float
    high: float
    measured: float | None = None
    """None: the kernel has no time, it failed."""

    @property
    def middle(self) -> float:
        """The middle of what was promised."""
        return (self.low + self.high) / 2

    @property
    def held(self) -> bool:
        """Whether the measurement lies in what was promised."""
        return self.measured is not None and self.low <= self.measured <= self.high


def predictions(population: Population) -> list[Prediction]:
    """Return what a campaign's experiments promised and gave."""
    found: list[Prediction] = []
    for trial in population:
        kernel = trial.kernel
        if kernel.experiment is None or kernel.tuned_from is not None:
            continue
        low, high = kernel.experiment.uplift
        measured = population.uplift(trial) if score(trial) and not trial.evaluation.by_model else None
        designer = kernel.authors.get("designer", Author.of(())).model
        found.append(Prediction(kernel=kernel.name, designer=designer, low=low, high=high, measured=measured))
    return found


def table(found: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Return per designer how well it predicts.

    `held`: share of measured uplifts within the promise. `bias`: median of promise (its middle) less measurement, in
    percent of speed. `rank`: Spearman's correlation of promise and measurement, None below four measurements or when
    all of either are equal. `failed`: share of experiments whose kernel has no time.
    """
    rows: list[dict[str, Any]] = []
    for designer in sorted({p.designer for p in found}):
        of_one = [p for p in found if p.designer == designer]
        timed = [p for p in of_one if p.measured is not None]
        rows.append(
            {
                "designer": designer,
                "experiments": len(of_one),
                "failed": round(1 - len(timed) / len(of_one), 3),
                "held": round(sum(p.held for p in timed) / len(timed), 3) if timed else None,
                "promised": round(statistics.median(p.middle for p in timed), 1) if timed else None,
                "measured": round(statistics.median(p.measured or 0.0 for p in timed), 1) if timed else None,
                "bias": round(statistics.median(p.middle - (p.measured or 0.0) for p in timed), 1) if timed else None,
                "rank": _rank_correlation([p.middle for p in timed], [p.measured or 0.0 for p in timed]),
            }
        )
    return rows


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) < 4 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return round(statistics.correlation(_ranks(first), _ranks(second)), 3)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return each value's rank; equal values share the mean of theirs."""
    ordered = sorted(values)
    first = {v: ordered.index(v) for v in set(values)}
    return [first[v] + (ordered.count(v) - 1) / 2 for v in values]
