"""Fits the model's constants to half of the measured times and reports the accuracy on the other half.

Bounded least squares on the logarithm of predicted over measured, with a loss that tolerates outliers (soft L1). A
constant that the times do not determine within a factor keeps its default: no entry depends on it, or another constant
has the same effect.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
from scipy.optimize import least_squares

from kernel_scientist.calibrate import accuracy
from kernel_scientist.calibrate.accuracy import Fit, Point
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware.gpus import Gpu

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


def fit(gpu: Gpu, points: Sequence[Point], seed: int = 0) -> Fit:
    """Fit a GPU's constants on half of the points and report on the other half."""
    fitted, held_out = halves(points, seed)
    constants, kept = solve(gpu, fitted)
    predicted = {p.name: predict.time_us(gpu, p.loads, constants) for p in points}
    families = {name: [p for p in held_out if p.family == name] for name in sorted({p.family for p in held_out})}
    return Fit(
        constants={name: float(f"{asdict(constants)[name]:.4g}") for name in MEASURED},
        kept=kept,
        rho=accuracy.rho(held_out, predicted),
        error=accuracy.error(held_out, predicted),
        families=tuple(accuracy.of_family(name, members, predicted) for name, members in families.items()),
        fitted_on=len(fitted),
        held_out=len(held_out),
        seed=seed,
        predicted_us={name: round(value, 3) for name, value in predicted.items()},
    )


def halves(points: Sequence[Point], seed: int) -> tuple[list[Point], list[Point]]:
    """Split the points of every family's case at random, so that each half contains all families and cases."""
    rng, first, second = random.Random(seed), list[Point](), list[Point]()
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(points, key=lambda p: p.name):
        groups.setdefault((point.family, point.case), []).append(point)
    for number, group in enumerate(groups.values()):
        rng.shuffle(group)
        middle = (len(group) + number % 2) // 2
        first += group[:middle]
        second += group[middle:]
    return first, second


def solve(
    gpu: Gpu, points: Sequence[Point], names: Sequence[str] = MEASURED, start: Constants | None = None
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
        kept[loosest] = _reason(errors[loosest])
    return start, kept


def _solved(
    gpu: Gpu, points: Sequence[Point], free: Sequence[str], base: Constants
) -> tuple[Constants, dict[str, float]]:
    """Return the best values of the free constants and the standard errors of their logarithms."""
    measured = np.log([point.time_us for point in points])

    def residuals(logs: Array) -> Array:
        constants = _constants(free, logs, base)
        return np.log([predict.time_us(gpu, point.loads, constants) for point in points]) - measured

    start = np.log([float(getattr(base, name)) for name in free])
    low, high = np.log([BOUNDS[name] for name in free]).T
    found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=OUTLIER, diff_step=1e-4)
    return _constants(free, found.x, base), dict(zip(free, _errors(found.jac, residuals(found.x)), strict=True))


def _constants(free: Sequence[str], logs: Array, base: Constants) -> Constants:
    values: dict[str, float] = dict(zip(free, np.exp(logs).tolist(), strict=True))
    return replace(base, **values)


def _errors(jacobian: Array, residuals: Array) -> list[float]:
    """Return standard errors from the curvature at the solution; huge for constants without effect."""
    noise = max(NOISE, 1.4826 * float(np.median(np.abs(residuals))))
    _, sizes, directions = np.linalg.svd(jacobian, full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(directions.shape[0] - sizes.size)])
    spread = noise / np.maximum(sizes, 1e-9)
    return np.sqrt(((directions * spread[:, None]) ** 2).sum(axis=0)).tolist()


def _reason(error: float) -> str:
    if error > 1e3:
        return "no time depends on it"
    return f"the times determine it only within a factor of {math.exp(min(error, 20.0)):.3g}"
