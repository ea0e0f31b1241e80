"""Estimates of times and ratios, with confidence intervals, from interleaved blocks.

A time is the interquartile geometric mean over blocks: on a shared machine some blocks take ten times as long. A ratio
is the geometric mean over cases of the quotients of such times. Its variance within processes comes from a bootstrap of
their blocks; all cases and both kernels share a draw, because the samples of a block are close in time. The variance
between processes is that of the processes' own values. If it is larger it counts, since the blocks of a process share
its memory layout. The interval is Student's t around the estimate, because the spread itself is estimated from few
blocks, or from two or three processes: quantiles of the draws would be too narrow.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from kernel_scientist.records.factors import UNRESOLVED

LEAST_BLOCKS = 4
"""Least number of blocks for an interval."""
MOST_REACH = 20.0
"""Farthest that an interval reaches from its middle, as a logarithm: it says nothing in either case."""
DRAWS = 2000
CHANCE = 0.05
"""Timing stops if the chance that the last stage finds the kernel faster is smaller than this."""
WILD = 6.0
"""Largest distance from the median that a block may have, in median deviations; outliers are clipped to it."""
TRIM = 0.25
"""Share of the blocks that is trimmed at either end."""

Blocks = Sequence[Sequence[float]]
"""Times by process and block."""


class Estimate(NamedTuple):
    """A value on a logarithmic scale, and its standard deviation."""

    log: float
    deviation: float
    blocks: int
    freedom: float
    """Degrees of freedom of the deviation (Satterthwaite 1946): those of the blocks, or of the processes if these
    differ more than their blocks explain, or between the two."""

    def interval(self, confidence: float, margin: float = 0.0) -> tuple[float, float]:
        """Return the interval of the value itself; `UNRESOLVED` with too few blocks.

        `margin`: what equal sources differ by from one set of processes to the next; it widens the interval.
        """
        if self.blocks < LEAST_BLOCKS:
            return UNRESOLVED
        reach = min(_student(self.freedom, confidence) * self.deviation + math.log1p(margin), MOST_REACH)
        lowest, highest = UNRESOLVED  # which stand for no interval
        return max(math.exp(self.log - reach), 2 * lowest), min(math.exp(self.log + reach), highest / 2)


def time(blocks: Blocks) -> Estimate:
    """Estimate a time from one kernel's blocks on one case. Raises ValueError under the same condition as `ratio`."""
    return _estimate([blocks], [1.0])


def ratio(times: Sequence[Blocks], against: Sequence[Blocks]) -> Estimate:
    """Estimate how many times faster `times` is than `against`: blocks case by case, paired by process and block.

    Raises ValueError for a time that is not a positive finite number.
    """
    weight = 1 / len(times)
    return _estimate([*against, *times], [weight] * len(times) + [-weight] * len(times))


def attainable(estimate: Estimate, confidence: float, margin: float, stages: tuple[int, int]) -> bool:
    """Whether the interval may still lie above 1 + margin at the last stage. `stages` is (stages done, all stages).

    True if, given the estimate, the chance is at least `CHANCE` (conditional power: Lan, Simon and Halperin 1982).
    """
    if estimate.blocks < LEAST_BLOCKS or estimate.deviation == 0:
        return True
    done = stages[0] / stages[1]
    needed = _student(estimate.blocks / done - 1, confidence)  # at best: processes that differ may yet turn out alike
    expected = (estimate.log - math.log1p(margin)) / estimate.deviation / math.sqrt(done)
    return expected + NormalDist().inv_cdf(1 - CHANCE) * math.sqrt(1 - done) >= needed


def _student(freedom: float, confidence: float) -> float:
    """Return the half-width of Student's t interval, in standard deviations."""
    from scipy.special import stdtrit  # its import takes up to half a second; a kernel that fails needs none

    return float(stdtrit(freedom, 1 - (1 - confidence) / 2))


def _estimate(tables: Sequence[Blocks], weights: Sequence[float]) -> Estimate:
    """Return the weighted sum of the tables' interquartile means of logarithms."""
    logs = [_bounded([_log(process) for process in table if len(process)]) for table in tables]
    pooled = np.stack([np.concatenate(processes) for processes in logs])
    value = float(np.asarray(weights) @ _trimmed(pooled))
    count = pooled.shape[1]
    if count < LEAST_BLOCKS:
        return Estimate(value, math.inf, count, 0)
    shortest = min(len(process) for process in logs[0])
    cube = np.stack([np.stack([process[:shortest] for process in processes]) for processes in logs])
    return Estimate(value, *_spread(cube, np.asarray(weights), count))


def _spread(cube: np.ndarray, weights: np.ndarray, count: int) -> tuple[float, int, float]:
    """Return deviation, number of blocks and degrees of freedom of a weighted sum of (tables, processes, blocks)."""
    _, processes, blocks = cube.shape
    own = max(count - processes, 1)
    # A small sample underestimates the variance of its population by this factor.
    within = float((weights @ _resampled(cube)).var()) * blocks / max(blocks - 1, 1)
    if processes == 1:
        return math.sqrt(within), count, own
    values = weights @ np.stack([_trimmed(table) for table in cube])
    between = float(values.var(ddof=1)) / processes
    if between <= within:
        return math.sqrt(within), count, own
    share = (between - within) / between
    return math.sqrt(between), count, 1 / (share**2 / (processes - 1) + (1 - share) ** 2 / own)


def _bounded(processes: list[np.ndarray]) -> list[np.ndarray]:
    """Return the blocks, clipped to `WILD` median deviations from the median."""
    pooled = np.concatenate(processes)
    centre = np.median(pooled)
    reach = WILD * 1.4826 * float(np.median(np.abs(pooled - centre)))  # the median deviation of a normal variable
    return [np.clip(process, centre - reach, centre + reach) for process in processes] if reach > 0 else processes


def _resampled(cube: np.ndarray) -> np.ndarray:
    """Return (tables, DRAWS) interquartile means of blocks drawn within each process of (tables, processes, blocks)."""
    _, processes, blocks = cube.shape
    rng = np.random.default_rng(processes)  # the same samples give the same interval
    drawn = rng.integers(blocks, size=(DRAWS, processes, blocks))
    return np.stack([_trimmed(table[np.arange(processes)[:, None], drawn].reshape(DRAWS, -1)) for table in cube])


def _trimmed(rows: np.ndarray) -> np.ndarray:
    cut = int(rows.shape[1] * TRIM)
    ordered = np.sort(rows, axis=1)
    return ordered[:, cut : rows.shape[1] - cut].mean(axis=1)


def _log(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"times must be positive and finite: {list(values)[:5]}")
    return np.log(array)
