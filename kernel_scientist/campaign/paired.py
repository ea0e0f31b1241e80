"""Arithmetic of paired differences: sign-flip tests, and a mean over problems with the interval of Student's t.

Differences are logarithms of ratios, so that an exchange of the two sides inverts a ratio and its interval.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from kernel_scientist.records.control_result import SignFlipTest
from kernel_scientist.records.results import Interval

RESAMPLES = 2**16
"""Up to this number all sign flips are enumerated; beyond it they are sampled."""
CONFIDENCE = 0.95
LEAST_UNITS = 6
"""Units from which a two-sided p of 0.05 can be reached: 2 / 2^6. With five it is 0.0625 at least."""


def sign_flips(gains: Sequence[float]) -> float:
    """Return how often chance alone gives a mean gain as large: one-sided p of the sign-flip test."""
    test: Any = stats.permutation_test
    found = test((gains,), np.mean, permutation_type="samples", alternative="greater", n_resamples=RESAMPLES, rng=0)
    return round(float(found.pvalue), 4)


def two_sided(unit: str, gains: Sequence[float]) -> SignFlipTest:
    """Return the test whether the mean of some gains differs from 0, in either direction. `unit`: what has one gain.

    Its only assumption is that the sign of each gain would be a coin's if neither side were better.
    """
    count = len(gains)
    p = None
    if count >= LEAST_UNITS:
        p = min(1.0, round(2 * min(sign_flips(gains), sign_flips([-gain for gain in gains])), 4))
    return SignFlipTest(unit=unit, count=count, least=min(1.0, 2 / 2**count), p=p)


def weighted(problems: Sequence[Sequence[float]]) -> list[float]:
    """Return each pair's part of the mean over problems, in which problems count alike, whatever their pairs are.

    `problems`: the logarithms of the ratios of each problem's pairs, at least one. The mean of the parts has the sign
    of the mean of the problems' means.
    """
    return [log / len(logs) for logs in problems for log in logs]


def over_problems(means: Sequence[float]) -> tuple[float, Interval | None]:
    """Return the geometric mean of problems' ratios, and the interval with which it would hold of such problems.

    `means`: each problem's mean logarithm, at least one. The interval is Student's t with one degree of freedom less
    than there are problems: repeats on one problem say nothing of another. None for a single problem.
    """
    middle, freedom = statistics.fmean(means), len(means) - 1
    if not freedom:
        return math.exp(middle), None
    t: Any = stats.t
    half = float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * statistics.stdev(means) / math.sqrt(len(means))
    return math.exp(middle), (_exp(middle - half), _exp(middle + half))


def _exp(value: float) -> float:
    """Return e^value, within what a record of finite numbers and `factors.UNRESOLVED` can hold."""
    return math.exp(max(-600.0, min(600.0, value)))
