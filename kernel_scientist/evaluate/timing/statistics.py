"""Is B faster than A? Paired log-ratios per interleaved block, and a bootstrap over (process, block).

Samples within a block share its moment, and blocks within a process share its memory layout, so the bootstrap draws
processes first and blocks within them, never single samples. On a shared machine one block in many is wild by a
factor of ten: the estimate is a trimmed mean, and a block far from all others counts as the farthest that is still
plausible. How far the estimate may be off, in units of a spread that is itself estimated from few blocks, is Student's
t: quantiles of the draws would lie within the blocks at hand, of which four are on one side of the truth once in eight
times.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from kernel_scientist.records.evaluation import UNRESOLVED

LEAST_BLOCKS = 4
"""Fewer blocks than this resolve nothing."""
DRAWS = 4000
CHANCE = 0.05
"""A kernel with a smaller chance to be found faster at the last look is not looked at again."""
WILD = 6.0
TRIM = 0.25
"""Share of the blocks left out at either end: the mean of the middle half."""

Blocks = Sequence[Sequence[float]]
"""Values by process and block."""


def ratio(times: Blocks, against: Blocks, confidence: float) -> tuple[float, tuple[float, float]]:
    """Return how many times faster `times` is than `against`, with its interval; both are paired by process and block.

    Raises ValueError for a time that is not a positive finite number.
    """
    middle, deviation, count = _estimate(times, against)
    if count < LEAST_BLOCKS:
        return math.exp(middle), UNRESOLVED
    reach = float(stdtrit(count - 1, 1 - (1 - confidence) / 2)) * deviation
    return math.exp(middle), (math.exp(middle - reach), math.exp(middle + reach))


def attainable(times: Blocks, against: Blocks, confidence: float, margin: float, looks: tuple[int, int]) -> bool:
    """Whether the interval may still come to lie above 1 + margin, the last look's; `looks`: (taken, in all).

    If what was seen so far is how it is, with a chance of at least `CHANCE` (conditional power: Lan, Simon and Halperin
    1982). Stopping where it may not can only make fewer false claims.
    """
    middle, deviation, count = _estimate(times, against)
    if count < LEAST_BLOCKS or deviation == 0:
        return True
    taken = looks[0] / looks[1]
    needed = float(stdtrit(count / taken - 1, 1 - (1 - confidence) / 2))
    hoped = (middle - math.log1p(margin)) / deviation / math.sqrt(taken)
    return hoped + float(ndtri(1 - CHANCE)) * math.sqrt(1 - taken) >= needed


def _estimate(times: Blocks, against: Blocks) -> tuple[float, float, int]:
    """Return the log of the ratio, how far it may be off (standard deviation), and the number of blocks."""
    logs = [np.log(_positive(b) / _positive(a)) for a, b in zip(times, against, strict=True) if len(a)]
    logs = _bounded(logs)
    middle = float(_trimmed(np.concatenate(logs)[None, :])[0])
    count = sum(len(block) for block in logs)
    if count < LEAST_BLOCKS:
        return middle, math.inf, count
    # Few blocks spread less than the whole they are drawn from: by this factor in variance.
    return middle, float(_resampled(logs).std()) * math.sqrt(count / (count - 1)), count


def _bounded(logs: list[np.ndarray]) -> list[np.ndarray]:
    """Bring blocks that lie beyond `WILD` deviations from the median back to there."""
    pooled = np.concatenate(logs)
    centre = np.median(pooled)
    reach = WILD * 1.4826 * float(np.median(np.abs(pooled - centre)))  # the median deviation of a normal variable
    return [np.clip(block, centre - reach, centre + reach) for block in logs] if reach > 0 else logs


def _resampled(logs: list[np.ndarray]) -> np.ndarray:
    """Return the estimate of `DRAWS` samples drawn with replacement, processes first, then blocks."""
    rng = np.random.default_rng(len(logs))  # the same samples give the same interval
    shortest = min(len(block) for block in logs)
    table = np.stack([block[:shortest] for block in logs])
    processes = rng.integers(len(logs), size=(DRAWS, len(logs), 1))
    blocks = rng.integers(shortest, size=(DRAWS, len(logs), shortest))
    return _trimmed(table[processes, blocks].reshape(DRAWS, -1))


def _trimmed(rows: np.ndarray) -> np.ndarray:
    cut = int(rows.shape[1] * TRIM)
    ordered = np.sort(rows, axis=1)
    return ordered[:, cut : rows.shape[1] - cut].mean(axis=1)


def _positive(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"times must be positive and finite: {list(values)[:5]}")
    return array


def median_interval(samples: Sequence[float], confidence: float) -> tuple[float, tuple[float, float]]:
    """Return the median and its interval from order statistics (binomial: no assumption on the distribution).

    With too few samples for the confidence the interval is all of them.
    """
    ordered = sorted(samples)
    n = len(ordered)
    tail, cut = 0.0, 0
    while tail + math.comb(n, cut) / 2**n <= (1 - confidence) / 2:
        tail += math.comb(n, cut) / 2**n
        cut += 1
    first = max(cut - 1, 0)
    return _median(ordered), (ordered[first], ordered[n - 1 - first])


def _median(ordered: Sequence[float]) -> float:
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
