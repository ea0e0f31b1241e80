"""The model's constants from measured times: fitted on one half of the entries, judged on the other. Nothing runs here.

Bounded least squares on the logarithm of predicted over measured, with a loss that forgives wild entries (soft L1). A
constant that the times do not pin down within a factor, be it that nothing in the suite depends on it or that another
one does the same, keeps its default.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from kernel_scientist.calibrate.figures import Fit, judged
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.predict import Load
from kernel_scientist.hardware.gpus import Gpu

BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("hbm", "cache", "l2", "l1", "lds", "matrix", "vector"), (0.1, 1.2)),
    "latency_ns": (100.0, 4000.0),
    "launch_us": (0.5, 50.0),
    "next_us": (0.2, 50.0),
    "norm": (1.0, 12.0),
}
"""Above 1: the table's peaks are at a clock that a device may pass."""
LOOSE = 0.4
"""Standard error of a constant's logarithm from which it is not pinned down: a factor of 1.5."""
NOISE = 0.02
"""Errors of the times at the least; a perfect fit must not make every constant look certain."""
WILD = 0.2
"""Error in log time from which an entry counts less."""

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Point:
    """One entry as the fit sees it."""

    name: str
    family: str
    case: str
    loads: tuple[Load, ...]
    time_us: float


def fit(gpu: Gpu, points: Sequence[Point], seed: int = 0) -> Fit:
    """Fit a GPU's constants on half of the points and report on the other half."""
    ours, others = halves(points, seed)
    constants, kept = solve(gpu, ours)
    predicted = {p.name: predict.time_us(gpu, p.loads, constants) for p in points}
    cases = {p.name: (p.family, p.case) for p in others}
    return judged(constants, kept, {p.name: p.time_us for p in others}, predicted, cases, len(ours), seed)


def halves(points: Sequence[Point], seed: int) -> tuple[list[Point], list[Point]]:
    """Split points by lot, every family's case for itself, so that either half has seen all of them."""
    rng, ours, others = random.Random(seed), list[Point](), list[Point]()
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(points, key=lambda p: p.name):
        groups.setdefault((point.family, point.case), []).append(point)
    for number, group in enumerate(groups.values()):
        rng.shuffle(group)
        middle = (len(group) + number % 2) // 2
        ours += group[:middle]
        others += group[middle:]
    return ours, others


def solve(gpu: Gpu, points: Sequence[Point]) -> tuple[Constants, dict[str, str]]:
    """Return the constants that fit best, and why some of them kept their default."""
    kept: dict[str, str] = {}
    if not points:
        return Constants(), dict.fromkeys(BOUNDS, "there are no times")
    while True:
        free = [name for name in BOUNDS if name not in kept]
        constants, errors = _solved(gpu, points, free)
        loosest = max(free, key=lambda name: errors[name], default=None)
        if loosest is None or errors[loosest] <= LOOSE:
            return constants, kept
        kept[loosest] = _why(errors[loosest])


def _solved(gpu: Gpu, points: Sequence[Point], free: Sequence[str]) -> tuple[Constants, dict[str, float]]:
    """Return the best constants and the standard errors of their logarithms."""
    if not free:
        return Constants(), {}
    measured = np.log([point.time_us for point in points])

    def residuals(logs: Array) -> Array:
        constants = _constants(free, logs)
        return np.log([predict.time_us(gpu, point.loads, constants) for point in points]) - measured

    start = np.log([float(getattr(Constants(), name)) for name in free])
    low, high = (np.log([BOUNDS[name][end] for name in free]) for end in (0, 1))
    found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=WILD, diff_step=1e-4)
    return _constants(free, found.x), dict(zip(free, _errors(found.jac, residuals(found.x)), strict=True))


def _constants(free: Sequence[str], logs: Array) -> Constants:
    values: Mapping[str, float] = dict(zip(free, (math.exp(x) for x in logs), strict=True))
    return replace(Constants(), **values)


def _errors(jacobian: Array, residuals: Array) -> list[float]:
    """Return standard errors from the curvature at the solution; infinite along what changes nothing."""
    noise = max(NOISE, 1.4826 * float(np.median(np.abs(residuals))))
    _, sizes, directions = np.linalg.svd(jacobian, full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(directions.shape[0] - sizes.size)])
    spread = noise / np.maximum(sizes, 1e-9)
    return [float(math.sqrt(total)) for total in ((directions * spread[:, None]) ** 2).sum(axis=0)]


def _why(error: float) -> str:
    if error > 1e3:
        return "no time depends on it"
    return f"the times leave it open by a factor of {math.exp(min(error, 20.0)):.3g}"
