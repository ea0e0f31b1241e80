"""Plan of a timing, fixed before the first sample."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Case, Kernel

Hold = Callable[[], AbstractContextManager[object]]
"""Holds the device's lock, or keeps timings off, as long as it is open."""
LEAST_STAGES = 2
"""Stages needed to call a kernel faster: one set of processes cannot show the variation between processes."""


class TimedSource(Record):
    """A source to be timed under a name."""

    name: str
    source: str
    compiles: bool = False
    """Whether it starts compilers in its first call of each case. True only of sources that are trusted."""
    optional: bool = False
    """Whether the timing is repeated without this source if it fails."""
    is_finalist: bool = False
    """Whether its own speedup over the reference is stated, too (`Evaluation.beside`)."""

    @staticmethod
    def of(kernel: Kernel, optional: bool = False) -> "TimedSource":
        """Return a kernel's source under its name."""
        return TimedSource(name=kernel.name, source=kernel.source, optional=optional)


def never() -> bool:
    """Return False."""
    return False


@dataclass(frozen=True)
class TimingPlan:
    """A timing: cases, the candidate, and the group-sequential test that decides."""

    cases: tuple[Case, ...]
    candidate: str
    baseline: str | None
    """Name of the source that the candidate must beat; if None, all stages are run."""
    blocks: int
    """Per stage."""
    turns: int
    """Passes per block, each in an order and its reverse. A block's quickest row counts."""
    stages: int
    confidence: float
    """Confidence of the interval at each stage; the error probability is divided among the stages."""
    margins: tuple[float, ...] = ()
    """Margin per stage, by which intervals are wider."""
    drop_after: int = 0
    drop_below: float = 0.0
    is_idle: Callable[[], bool] = never
    """Whether the device would be idle if the timing ended. Then a timing that is unlikely to find the candidate faster
    goes on nevertheless: each stage narrows the intervals that order kernels. The test's error is the same, since the
    confidence is that of `stages` looks."""

    def margin(self, stage: int) -> float:
        """Return the margin that applies after `stage` stages.

        One set of processes says of no kernel that it is faster: where timing ends after it, the larger of the first
        and the last stage's margin applies.
        """
        if not self.margins:
            return 0.0
        reached = self.margins[min(stage, len(self.margins)) - 1]
        return reached if stage >= LEAST_STAGES else max(reached, self.margins[-1])
