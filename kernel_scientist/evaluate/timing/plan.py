"""What is to be timed, declared before the first sample."""

from dataclasses import dataclass

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import Case, Kernel

LEAST_STAGES = 2
"""Stages after which a kernel may be called faster: one set of processes cannot show how much another would differ."""


class TimedSource(Record):
    """A source to be timed under a name."""

    name: str
    source: str

    @staticmethod
    def of(kernel: Kernel) -> "TimedSource":
        """Return a kernel's source under its name."""
        return TimedSource(name=kernel.name, source=kernel.source)

    def named(self, name: str) -> "TimedSource":
        """Return the same source under another name."""
        return TimedSource(name=name, source=self.source)


@dataclass(frozen=True)
class Plan:
    """A timing: cases, the candidate, and the group-sequential test that decides."""

    cases: tuple[Case, ...]
    candidate: str
    baseline: str | None
    """What the candidate must beat. None: all stages are run, whatever they show."""
    blocks: int
    """Per stage."""
    turns: int
    """How often a block times every source there and back: the quickest row of a block counts."""
    stages: int
    confidence: float
    """Of the interval at each stage: the error is shared among the stages."""
    margins: tuple[float, ...] = ()
    """What the interval's lower bound must exceed 1 by, per stage."""
    drop_after: int = 0
    drop_below: float = 0.0

    def margin(self, stage: int) -> float:
        """Return what the lower bound must exceed 1 by after `stage` stages."""
        return self.margins[min(stage, len(self.margins)) - 1] if self.margins else 0.0
