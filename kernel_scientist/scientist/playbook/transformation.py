"""An entry of the rule-based agent's catalogues."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.scientist.roles import CpuInfo


@dataclass(frozen=True)
class Variant:
    """One way to apply a transformation to a given source."""

    detail: str
    """Short, unique within the transformation: `KC 128 -> 512`."""
    rubric: tuple[str, ...]
    """Descriptions of the edits."""
    source: KernelSource
    """The edited source."""


Apply = Callable[[KernelSource, CpuInfo], Sequence[Variant]]


@dataclass(frozen=True)
class Transformation:
    """A named change that is known to help sometimes, with its precondition, rubric and predicted uplift."""

    name: str
    hypothesis: str
    """Why the change may make a kernel faster."""
    uplift: tuple[float, float]
    """Predicted [min, max] in percent of speed, without measurements of this campaign."""
    innovation: int
    apply: Apply
    """Returns the variants; none if the precondition does not hold."""
    helps: frozenset[str] = frozenset()
    """The limits it relieves: resources as in `Prediction.limited_by`, or `registers` and `capacity` (of local memory)
    if these limit occupancy."""


def entry(
    name: str, hypothesis: str, uplift: tuple[float, float], innovation: int, apply: Apply, helps: str = ""
) -> Transformation:
    """Return a catalogue entry; `helps` is a list of limits separated by spaces."""
    return Transformation(name, hypothesis, uplift, innovation, apply, frozenset(helps.split()))


def fragment(name: str) -> str:
    """Return the C++ text of that name in `fragments/`, which an edit inserts."""
    return (Path(__file__).parent / "fragments" / f"{name}.cpp").read_text()
