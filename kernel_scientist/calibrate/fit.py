"""Fits the model's constants to half of the measured times and reports the accuracy on the other half: ranks, errors,
regret.

Bounded least squares on the logarithm of predicted over measured, with a loss that tolerates outliers (soft L1). A
constant that the times do not determine within a factor keeps its default: no entry depends on it, or another constant
has the same effect.
"""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.base import Record

RHO, REGRET = 0.9, 0.10
"""The goal within every family."""
DIGITS = 4
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("hbm", "cache", "l2", "l1", "lds", "matrix", "vector"), (0.1, 1.2)),
    "latency_ns": (30.0, 4000.0),
    "memory_ns": (10.0, 4000.0),
    "start_us": (0.2, 20.0),
    "launch_us": (0.5, 50.0),
    "next_us": (0.2, 50.0),
    "norm": (1.0, 12.0),
}
"""Bounds of the constants. Some exceed 1, because a device may exceed the clock of the table's peaks."""
MEASURED = tuple(name for name in BOUNDS if name != "start_us")
"""Constants that are fitted to times measured here: events around a launch do not separate its start from the rest."""
LOOSE = 0.4
"""Standard error of a constant's logarithm from which it counts as undetermined (a factor of 1.5)."""
NOISE = 0.02
"""Minimum error of a time, so that a perfect fit does not make every constant look certain."""
OUTLIER = 0.2
"""Error in log time from which an entry counts less."""

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class FitPoint:
    """One measured entry and its features."""

    name: str
    family: str
    case: str
    loads: tuple[KernelLoad, ...]
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
    """Of the held-out half, which is looked at once: after the fit, for the one seed."""
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


def fit(gpu: Gpu, points: Sequence[FitPoint], seed: int = 0) -> Fit:
    """Fit a GPU's constants on half of the points and report on the other half."""
    fitted, held_out = halves(points, seed)
    constants, kept = solve(gpu, fitted)
    predicted = {p.name: predict.time_us(gpu, p.loads, constants) for p in points}
    families = {name: [p for p in held_out if p.family == name] for name in sorted({p.family for p in held_out})}
    return Fit(
        constants={name: float(f"{asdict(constants)[name]:.4g}") for name in MEASURED},
        kept=kept,
        rho=rho(held_out, predicted),
        error=error(held_out, predicted),
        families=tuple(of_family(name, members, predicted) for name, members in families.items()),
        fitted_on=len(fitted),
        held_out=len(held_out),
        seed=seed,
        predicted_us={name: round(value, 3) for name, value in predicted.items()},
    )


def of_family(family: str, points: Sequence[FitPoint], predicted: Mapping[str, float]) -> FamilyFit:
    """Return the accuracy of predicted times, by name, on a family's held-out points."""
    cases = [[p for p in points if p.case == case] for case in sorted({p.case for p in points})]
    regrets = [regret(of_case, predicted) for of_case in cases if len(of_case) > 1]
    return FamilyFit(
        family=family,
        entries=len(points),
        cases=len(cases),
        rho=rho(points, predicted),
        error=error(points, predicted),
        regret=round(statistics.mean(regrets), DIGITS) if regrets else None,
        worst_regret=round(max(regrets), DIGITS) if regrets else None,
    )


def regret(case: Sequence[FitPoint], predicted: Mapping[str, float]) -> float:
    """Return how much slower the point predicted fastest is than the best; of equal predictions the slowest counts."""
    least = min(predicted[point.name] for point in case)
    chosen = max(point.time_us for point in case if predicted[point.name] <= least * (1 + 1e-9))
    return chosen / min(point.time_us for point in case) - 1


def error(points: Sequence[FitPoint], predicted: Mapping[str, float]) -> float | None:
    """Return the median relative error; None without points."""
    errors = [abs(predicted[point.name] / point.time_us - 1) for point in points]
    return round(statistics.median(errors), DIGITS) if errors else None


def rho(points: Sequence[FitPoint], predicted: Mapping[str, float]) -> float | None:
    """Return Spearman's rho; None for fewer than three points, or if all times or all predictions are equal."""
    measured, expected = [point.time_us for point in points], [predicted[point.name] for point in points]
    if len(points) < 3 or len(set(measured)) == 1 or len(set(expected)) == 1:
        return None
    correlation: Any = spearmanr(expected, measured)
    return round(float(correlation.statistic), DIGITS)


def halves(points: Sequence[FitPoint], seed: int) -> tuple[list[FitPoint], list[FitPoint]]:
    """Split the points of every family's case at random, so that each half contains all families and cases."""
    rng, first, second = random.Random(seed), list[FitPoint](), list[FitPoint]()
    groups: dict[tuple[str, str], list[FitPoint]] = {}
    for point in sorted(points, key=lambda p: p.name):
        groups.setdefault((point.family, point.case), []).append(point)
    for number, group in enumerate(groups.values()):
        rng.shuffle(group)
        middle = (len(group) + number % 2) // 2
        first += group[:middle]
        second += group[middle:]
    return first, second


def solve(
    gpu: Gpu, points: Sequence[FitPoint], names: Sequence[str] = MEASURED, start: Constants | None = None
) -> tuple[Constants, dict[str, str]]:
    """Return `start` with the named constants that fit best, and the reasons why some of them keep their value."""
    kept: dict[str, str] = {}
    start = start or Constants()
    if not points:
        return start, dict.fromkeys(names, "there are no times")
    while free := [name for name in names if name not in kept]:
        constants, errors = _solved(gpu, points, free, start)
        loosest = max(free, key=lambda name: errors[name])
        if errors[loosest] <= LOOSE:
            return constants, kept
        factor = math.exp(min(errors[loosest], 20.0))
        within = f"the times determine it only within a factor of {factor:.3g}"
        kept[loosest] = "no time depends on it" if errors[loosest] > 1e3 else within
    return start, kept


def _solved(
    gpu: Gpu, points: Sequence[FitPoint], free: Sequence[str], base: Constants
) -> tuple[Constants, dict[str, float]]:
    """Return the best values of the free constants and the standard errors of their logarithms."""
    measured = np.log([point.time_us for point in points])

    def constants(logs: Array) -> Constants:
        values: dict[str, float] = dict(zip(free, np.exp(logs).tolist(), strict=True))
        return replace(base, **values)

    def residuals(logs: Array) -> Array:
        known = constants(logs)
        return np.log([predict.time_us(gpu, point.loads, known) for point in points]) - measured

    start = np.log([float(getattr(base, name)) for name in free])
    low, high = np.log([BOUNDS[name] for name in free]).T
    found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=OUTLIER, diff_step=1e-4)
    return constants(found.x), dict(zip(free, _errors(found.jac, residuals(found.x)), strict=True))


def _errors(jacobian: Array, residuals: Array) -> list[float]:
    """Return standard errors from the curvature at the solution; huge for constants without effect."""
    noise = max(NOISE, 1.4826 * float(np.median(np.abs(residuals))))
    _, sizes, directions = np.linalg.svd(jacobian, full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(directions.shape[0] - sizes.size)])
    spread = noise / np.maximum(sizes, 1e-9)
    return np.sqrt(((directions * spread[:, None]) ** 2).sum(axis=0)).tolist()
