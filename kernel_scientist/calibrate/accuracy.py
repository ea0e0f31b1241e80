"""Accuracy of predicted times on measured entries that were not fitted: ranks, errors, regret."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import spearmanr

from kernel_scientist.gpu.model.predict import Load
from kernel_scientist.records.base import Record

RHO, REGRET = 0.9, 0.10
"""The goal within every family."""
DIGITS = 4


@dataclass(frozen=True)
class Point:
    """One measured entry and its features."""

    name: str
    family: str
    case: str
    loads: tuple[Load, ...]
    time_us: float


class FamilyFit(Record):
    """Accuracy on one family's held-out entries."""

    family: str
    entries: int
    cases: int
    rho: float | None
    """Spearman's rho of predicted and measured times; None for equal times or fewer than three."""
    error: float | None
    """Median of |predicted / measured - 1|."""
    regret: float | None
    """Time of the entry predicted fastest over the best one's of its case, less 1; mean over cases."""
    worst_regret: float | None


class Fit(Record):
    """Fitted constants and the accuracy of their predictions."""

    constants: dict[str, float]
    kept: dict[str, str]
    """Constants that keep their defaults because the times do not determine them, with the reason."""
    rho: float | None
    error: float | None
    families: tuple[FamilyFit, ...]
    fitted_on: int
    held_out: int
    seed: int
    predicted_us: dict[str, float]
    """Predictions of every entry, including fitted ones."""

    @property
    def least_rho(self) -> float | None:
        """The lowest rank correlation of a family."""
        return min((f.rho for f in self.families if f.rho is not None), default=None)

    @property
    def most_regret(self) -> float | None:
        """The largest regret of a family."""
        return max((f.regret for f in self.families if f.regret is not None), default=None)

    @property
    def met(self) -> bool:
        """Whether every family meets the goal; unknown figures do not meet it."""
        rho, regret = self.least_rho, self.most_regret
        return rho is not None and regret is not None and rho >= RHO and regret <= REGRET


def of_family(family: str, points: Sequence[Point], predicted: Mapping[str, float]) -> FamilyFit:
    """Return the accuracy of predicted times, by name, on a family's held-out points."""
    cases: dict[str, list[Point]] = {}
    for point in points:
        cases.setdefault(point.case, []).append(point)
    regrets = [regret(group, predicted) for group in cases.values() if len(group) > 1]
    return FamilyFit(
        family=family,
        entries=len(points),
        cases=len(cases),
        rho=rho(points, predicted),
        error=error(points, predicted),
        regret=round(statistics.mean(regrets), DIGITS) if regrets else None,
        worst_regret=round(max(regrets), DIGITS) if regrets else None,
    )


def regret(case: Sequence[Point], predicted: Mapping[str, float]) -> float:
    """Return how much slower the point predicted fastest is than the best; of equal predictions the slowest counts."""
    least = min(predicted[point.name] for point in case)
    chosen = max(point.time_us for point in case if predicted[point.name] <= least * (1 + 1e-9))
    return chosen / min(point.time_us for point in case) - 1


def error(points: Sequence[Point], predicted: Mapping[str, float]) -> float | None:
    """Return the median relative error; None without points."""
    errors = [abs(predicted[point.name] / point.time_us - 1) for point in points]
    return round(statistics.median(errors), DIGITS) if errors else None


def rho(points: Sequence[Point], predicted: Mapping[str, float]) -> float | None:
    """Return Spearman's rho; None for fewer than three points, or if all times or all predictions are equal."""
    measured, expected = [point.time_us for point in points], [predicted[point.name] for point in points]
    if len(points) < 3 or len(set(measured)) == 1 or len(set(expected)) == 1:
        return None
    correlation: Any = spearmanr(expected, measured)
    return round(float(correlation.statistic), DIGITS)
