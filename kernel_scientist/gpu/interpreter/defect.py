"""What the memory checker finds: defects with their place, and the origins of values that nothing defines.

Imports only the standard library and numpy.
"""

import linecache
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Program = tuple[int, int, int]

OUT_OF_BOUNDS_READ: Final = "out-of-bounds read"
OUT_OF_BOUNDS_WRITE: Final = "out-of-bounds write"
UNINITIALISED_READ: Final = "uninitialised read"
WRITE_RACE: Final = "write race"
MASK_MISTAKE: Final = "mask mistake"

NEVER_WRITTEN: Final = 1
"""The code of memory that was allocated and not written; codes above are origins, 0 is defined."""
UNKNOWN: Final = 32_767
"""The code of memory that a program may have written which was left out of a sample: nothing is concluded from it."""
MOST_ORIGINS: Final = 32_000
"""Codes are int16."""
MOST_DEFECTS, MOST_EXAMPLES = 40, 4

EXPLANATIONS: Final = {
    OUT_OF_BOUNDS_READ: "reads outside the tensor",
    OUT_OF_BOUNDS_WRITE: "writes outside the tensor",
    UNINITIALISED_READ: "reads what nothing has written, and the result depends on it",
    WRITE_RACE: "programs of one launch use one address without atomics, and the result depends on their order",
    MASK_MISTAKE: "lanes that the mask switches off have no `other`: undefined, says Triton's documentation, and the "
    "result depends on them (Triton 3.7 puts zero there on gfx942 and sm_90)",
}


@dataclass(frozen=True)
class Site:
    """A line of a kernel."""

    kernel: str
    file: str
    line: int

    @property
    def source(self) -> str:
        """The line's text, where its file can be read."""
        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True)
class Example:
    """One lane of one program: the element is counted from the tensor's first, and negative before it."""

    program: Program
    element: int


@dataclass(frozen=True)
class Defect:
    """One kind of defect at one line on one tensor."""

    kind: str
    kernel: str
    line: int
    source: str
    tensor: str
    lanes: int
    """How many lanes did it, all programs together."""
    programs: int
    """How many programs did it ..."""
    of_programs: int
    """... of how many in the launch where it was first seen."""
    examples: tuple[Example, ...]
    severity: str
    """`error`; `warning` for a mask mistake: it does no harm as long as the compiler puts zero in such lanes."""
    note: str

    def message(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        return asdict(self)


@dataclass
class Finding:
    """A defect while it is being collected."""

    kind: str
    site: Site
    tensor: str
    of_programs: int
    lanes: int = 0
    programs: set[Program] = field(default_factory=set[Program])
    examples: list[Example] = field(default_factory=list[Example])

    def add(self, program: Program, element: int, lanes: int) -> None:
        """Count `lanes` lanes of a program; keep a few of them as examples."""
        self.lanes += lanes
        if program not in self.programs and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(Example(program, element))
        self.programs.add(program)

    def defect(self) -> Defect:
        """Return the finished record."""
        note = EXPLANATIONS[self.kind]
        if self.kind in (OUT_OF_BOUNDS_READ, OUT_OF_BOUNDS_WRITE) and len(self.programs) < self.of_programs:
            note += f"; {len(self.programs)} of {self.of_programs} programs do: a mask is missing or wrong at the edge"
        return Defect(
            kind=self.kind,
            kernel=self.site.kernel,
            line=self.site.line,
            source=self.site.source,
            tensor=self.tensor,
            lanes=self.lanes,
            programs=len(self.programs),
            of_programs=self.of_programs,
            examples=tuple(self.examples),
            severity="warning" if self.kind == MASK_MISTAKE else "error",
            note=note,
        )


@dataclass
class Origin:
    """Where an undefined value came from; a defect only once something depends on it."""

    kind: str
    site: Site
    tensor: str
    program: Program
    element: int
    of_programs: int
    lanes: int = 0
    reached: bool = False


class Ledger:
    """All defects of one watched call, and the origins that values carry as codes."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, Site, str], Finding] = {}
        self._origins: list[Origin] = []
        self._codes: dict[tuple[str, Site, str, Program], int] = {}
        self._shared: dict[tuple[str, Site, str], int] = {}
        self.races: set[int] = set()
        """Codes whose origin is a race."""
        self.only_races = False
        """A launch is repeated: everything else has been counted."""

    def code(self, kind: str, site: Site, tensor: str, program: Program, element: int, of_programs: int) -> int:
        """Return the code of an origin; beyond MOST_ORIGINS, programs share one (0, defined, if there is none)."""
        key, shared = (kind, site, tensor, program), (kind, site, tensor)
        if key not in self._codes:
            if len(self._origins) >= MOST_ORIGINS:
                return self._shared.get(shared, 0)
            self._origins.append(Origin(kind, site, tensor, program, element, of_programs))
            self._codes[key] = self._shared[shared] = NEVER_WRITTEN + len(self._origins)
            if kind == WRITE_RACE:
                self.races.add(self._codes[key])
        return self._codes[key]

    def count(self, code: int, lanes: int) -> None:
        """Add lanes to an origin."""
        if code > NEVER_WRITTEN and (code in self.races or not self.only_races):
            self._origins[code - NEVER_WRITTEN - 1].lanes += lanes

    def reach(self, codes: Array) -> None:
        """Something that counts depends on values with these codes: their origins are defects."""
        for code in np.unique(codes).tolist():
            if NEVER_WRITTEN < code < UNKNOWN and not (origin := self._origins[code - NEVER_WRITTEN - 1]).reached:
                origin.reached = True
                self._add(origin)

    def out_of_bounds(self, lanes: Origin) -> None:
        """Lanes were out of bounds: a defect at once."""
        if not self.only_races:
            self._add(lanes)

    def _add(self, origin: Origin) -> None:
        key = (origin.kind, origin.site, origin.tensor)
        finding = self._findings.setdefault(key, Finding(*key, origin.of_programs))
        finding.add(origin.program, origin.element, origin.lanes)

    def defects(self) -> tuple[Defect, ...]:
        """All defects, in the order in which they were found, capped."""
        return tuple(finding.defect() for finding in list(self._findings.values())[:MOST_DEFECTS])

    @property
    def total(self) -> int:
        """How many there are, those beyond the cap included."""
        return len(self._findings)
