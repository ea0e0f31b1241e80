"""Curves over the number of kernels tried: speeds in the kernels' own runs, with their intervals."""

from typing import NamedTuple

from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE


class Point(NamedTuple):
    """A speed and its interval: over the reference, or the predicted share of the roofline's, which has none."""

    low: float
    ratio: float
    high: float


NONE = Point(0.0, 0.0, 0.0)
"""Before the first kernel with a speed."""


def point(trial: Trial) -> Point | None:
    """Return a kernel's speed in its own run; None without one, and if it is not resolved."""
    if trial.evaluation.by_model:
        share = score(trial)
        return Point(share, share, share) if share else None
    speedup = trial.evaluation.speedup_over(REFERENCE)
    if speedup is None or not speedup.resolved:
        return None
    low, high = speedup.interval
    return Point(low, speedup.ratio, high)


def of(population: Population) -> list[Point]:
    """Return the incumbent's speed after each kernel.

    The incumbent changes only by a test, so a lucky timing does not raise the curve. It may fall: speeds over the
    reference are of different runs. Where a new incumbent's is not resolved, the one before stays.
    """
    found, current, name = list[Point](), NONE, None
    for incumbent in population.incumbents():
        if incumbent is not None and incumbent != name:
            name, current = incumbent, point(population.get(incumbent)) or current
        found.append(current)
    return found
