"""What is to be timed, declared before the first sample."""

from dataclasses import dataclass

from kernel_scientist.records.kernel import Case

LEAST_LOOKS = 2
"""Sets of workers in which a kernel must have been faster, where so many looks are allowed."""


@dataclass(frozen=True)
class Plan:
    """What is to be timed, declared before the first sample."""

    cases: tuple[Case, ...]
    candidate: str
    rival: str | None
    """Whom the candidate must beat. None: all looks are taken, whatever they show."""
    blocks: int
    """Per look."""
    turns: int
    """How often a block calls every contestant there and back: twice as many calls, of which the quickest counts."""
    looks: int
    confidence: float
    """Of the interval at each look: the error is shared among the looks."""
    margins: tuple[float, ...] = ()
    """What the interval must clear at each look."""
    drop_after: int = 0
    drop_below: float = 0.0

    def margin(self, look: int) -> float:
        """Return what the lower bound must be above 1 by, after `look` looks."""
        return self.margins[min(look, len(self.margins)) - 1] if self.margins else 0.0
