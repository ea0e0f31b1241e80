"""What an entry of the playbook's catalogue is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_scientist.compile.source import KernelSource
from kernel_scientist.scientist.roles import Facts


@dataclass(frozen=True)
class Variant:
    """One way to carry a transformation out on a given source."""

    detail: str
    """Short, unique within the transformation: `KC 128 -> 512`."""
    rubric: tuple[str, ...]
    """The edits, in words."""
    source: KernelSource


Apply = Callable[[KernelSource, Facts], Sequence[Variant]]


@dataclass(frozen=True)
class Transformation:
    """A named change that people know to help sometimes, with its precondition, rubric and predicted uplift."""

    name: str
    hypothesis: str
    """Why it may be faster."""
    uplift: tuple[float, float]
    """Predicted [min, max] in percent of speed, before anything was measured here."""
    innovation: int
    apply: Apply
    """Return the variants; none when the precondition does not hold."""
    helps: frozenset[str] = frozenset()
    """The limits it relieves: resources as in `Prediction.limited_by`; `registers` and `capacity` (of local memory)
    when they hold occupancy down."""


def entry(
    name: str, hypothesis: str, uplift: tuple[float, float], innovation: int, apply: Apply, helps: str = ""
) -> Transformation:
    """Return an entry of a catalogue; `helps` names the limits it relieves, with spaces between."""
    return Transformation(name, hypothesis, uplift, innovation, apply, frozenset(helps.split()))
