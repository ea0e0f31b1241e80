"""The final of a campaign: its best kernels are timed against each other in one run, whose winner is the champion.

During the search each kernel is timed against the reference and the incumbent in a run of its own. Ratios of different
runs vary with the machine's state, so a kernel may have a higher recorded ratio than the incumbent although the test
never found it faster. The final puts all such kernels into one interleaved run.
"""

import math

from pydantic import Field

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.evaluation import Evaluation, Trial, geomean
from kernel_scientist.records.kernel import REFERENCE, Verdict


class Final(Record):
    """Times of the finalists and of the reference, measured in one interleaved run."""

    incumbent: str
    """The kernel that won the tests of the search."""
    times_us: dict[str, dict[str, Finite]] = Field(default_factory=dict[str, dict[str, float]])
    """Time per kernel and case in microseconds, the reference included; empty when the run failed."""
    failure: str = ""
    """Why there are no times."""

    @staticmethod
    def of(incumbent: str, evaluation: Evaluation) -> "Final":
        """Return the final from the incumbent's evaluation, which holds the paired times of all others."""
        if evaluation.verdict is not Verdict.OK:
            return Final(incumbent=incumbent, failure=f"{evaluation.verdict.value}: {evaluation.reason}")
        times_us = {incumbent: {t.case: t.time_us for t in evaluation.timings}}
        for speedup in evaluation.speedups:
            times_us[speedup.against] = {case: times.against_us for case, times in speedup.cases.items()}
        return Final(incumbent=incumbent, times_us=times_us)

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


def finalists(population: Population, most: int) -> list[Trial]:
    """Return the incumbent and the kernels with a better recorded ratio or time, best first; at most `most`.

    On a model target only the incumbent is returned: predictions need no final.
    """
    incumbent = population.best()
    if incumbent is None or incumbent.evaluation.by_model:
        return [incumbent] if incumbent else []
    best = population.entry(incumbent.kernel.name)
    best_us = best.time_us or math.inf
    others = [e for e in population.ranking() if e.score > best.score or (e.time_us or math.inf) < best_us]
    return [incumbent, *(population.get(entry.name) for entry in others[: most - 1])]
