"""The record of a defect: what a kernel did to memory that is wrong, with its source line.

Imports only the standard library.
"""

from dataclasses import dataclass
from typing import Final

Program = tuple[int, int, int]

OUT_OF_BOUNDS_READ: Final = "out-of-bounds read"
OUT_OF_BOUNDS_WRITE: Final = "out-of-bounds write"
READ_ONLY_WRITE: Final = "write to a read-only input"
UNINITIALISED_READ: Final = "uninitialised read"
WRITE_RACE: Final = "write race"

EXPLANATIONS: Final = {
    OUT_OF_BOUNDS_READ: "reads outside the tensor",
    OUT_OF_BOUNDS_WRITE: "writes outside the tensor",
    READ_ONLY_WRITE: "writes to an input that a kernel may only read",
    UNINITIALISED_READ: "reads what nothing has written, and the result depends on it",
    WRITE_RACE: "programs of one launch use one address without atomics, and the result depends on their order",
}


@dataclass(frozen=True)
class Example:
    """One lane of one program; the element index is relative to the tensor's start and may be negative."""

    program: Program
    element: int


@dataclass(frozen=True)
class Defect:
    """One kind of defect at one line for one tensor."""

    kind: str
    kernel: str
    line: int
    source: str
    tensor: str
    lanes: int
    """Number of affected lanes, all programs together."""
    programs: int
    """Number of affected programs."""
    of_programs: int
    """Number of programs of the launch in which the defect was first found."""
    examples: tuple[Example, ...]
    note: str
    caller: int = 0
    """The line that calls the small function which `line` is in: there a reader looks first. 0: none does."""
    caller_source: str = ""

    @property
    def where(self) -> str:
        """Return the lines in words, first the one where a reader looks first."""
        if not self.caller:
            return f"line {self.line} ({self.source})"
        called = f"line {self.line}" + (f" ({self.source})" if self.line != self.caller else "")
        return f"line {self.caller} ({self.caller_source}), by the function inlined there, {called}"
