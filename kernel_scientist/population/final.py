"""The final of a campaign: its best kernels are timed against each other in one run, whose winner is the champion.

During the search each kernel is timed against the incumbent of that moment. A kernel that no test told from it may be
as fast or faster, and the estimate that orders kernels is of many runs. The final puts the kernels that may be the
fastest into one interleaved run.
"""

import math

from pydantic import Field

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.evaluation import Evaluation, Speedup, Trial, geomean
from kernel_scientist.records.kernel import REFERENCE, Verdict

MOST_CONSIDERED = 1000
"""Kernels with the best estimates, among which finalists are chosen."""

NEAR = 1.1
"""Kernels whose estimate is this factor below the incumbent's, or less, may be as fast."""


class Final(Record):
    """Times of the finalists and of the reference, measured in one interleaved run."""

    incumbent: str
    """The kernel that won the tests of the search."""
    times_us: dict[str, dict[str, Finite]] = Field(default_factory=dict[str, dict[str, float]])
    """Time per kernel and case in microseconds, the reference included; empty when the run failed."""
    speedups: dict[str, Speedup] = Field(default_factory=dict[str, Speedup])
    """Speedup over the reference by kernel, in the same run; empty in older records."""
    busy: str = ""
    """A sentence if the run was made on a busy machine."""
    failure: str = ""
    """Why there are no times."""
    kernels: int = 0
    """Kernels of the campaign when it was made; 0 in older records."""

    @staticmethod
    def of(incumbent: str, evaluation: Evaluation, kernels: int = 0) -> "Final":
        """Return the final from the incumbent's evaluation, which holds the paired times of all others."""
        if evaluation.verdict is not Verdict.OK:
            failure = f"{evaluation.verdict.value}: {evaluation.reason}"
            return Final(incumbent=incumbent, failure=failure, kernels=kernels)
        times_us = {incumbent: {t.case: t.time_us for t in evaluation.timings}}
        for speedup in evaluation.speedups:
            times_us[speedup.against] = {case: times.against_us for case, times in speedup.cases.items()}
        own = evaluation.speedup_over(REFERENCE)
        over = {**({incumbent: own} if own else {}), **evaluation.beside}
        return Final(incumbent=incumbent, times_us=times_us, speedups=over, busy=evaluation.busy, kernels=kernels)

    def is_of(self, population: Population) -> bool:
        """Whether it says who the champion of these kernels is: none was recorded since, by a campaign that went on."""
        best = population.best()
        is_last = self.kernels in (0, len(population))
        return is_last and best is not None and best.kernel.name == self.incumbent

    @property
    def champion(self) -> str:
        """Return the fastest finalist's name; the incumbent's when the run failed."""
        return next(iter(self.ranking()), self.incumbent)

    def ranking(self) -> list[str]:
        """Return the finalists' names, fastest first."""
        return sorted((name for name in self.times_us if name != REFERENCE), key=self.geomean_us)

    def geomean_us(self, name: str) -> float:
        """Return the geometric mean of a kernel's times over the cases, in microseconds."""
        return geomean(list(self.times_us[name].values()))

    def speedup(self, name: str) -> float:
        """Return the speedup over the reference: the geometric mean over the cases of the quotient of the times."""
        return geomean([self.times_us[REFERENCE][case] / us for case, us in self.times_us[name].items()])

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the interval of that speedup; None without one."""
        speedup = self.speedups.get(name)
        return speedup.interval if speedup and speedup.known else None


def finalists(population: Population, most: int) -> list[Trial]:
    """Return the incumbent, then the kernels that may be as fast: at most `most` in all.

    Those that were compared with the incumbent and not found slower come first, then those that were compared with one
    before it and whose estimate (`population.ranking`) is near the incumbent's. Kernels that a test found slower, and
    former incumbents, are left out. On a model target only the incumbent is returned: predictions need no final.
    """
    incumbent = population.best()
    if incumbent is None or incumbent.evaluation.by_model:
        return [incumbent] if incumbent else []
    name = incumbent.kernel.name
    near = population.estimate(name) - math.log2(NEAR)
    others = [
        e for e in population.ranking(MOST_CONSIDERED) if not e.is_slower and not population.was_incumbent(e.name)
    ]
    others = [e for e in others if e.rival == name or population.estimate(e.name) >= near]
    others.sort(key=lambda entry: entry.rival != name)  # stable: by the estimate otherwise
    return [incumbent, *(population.get(entry.name) for entry in others[: most - 1])]
