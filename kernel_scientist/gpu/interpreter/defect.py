"""Records of the memory checker: defects with their location, and origins of undefined values.

Imports only the standard library and numpy.
"""

import linecache
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Program = tuple[int, int, int]

OUT_OF_BOUNDS_READ: Final = "out-of-bounds read"
OUT_OF_BOUNDS_WRITE: Final = "out-of-bounds write"
READ_ONLY_WRITE: Final = "write to a read-only input"
UNINITIALISED_READ: Final = "uninitialised read"
WRITE_RACE: Final = "write race"
MASK_MISTAKE: Final = "mask mistake"

NEVER_WRITTEN: Final = 1
"""Code of memory that was allocated and never written; 0 means defined, higher codes are origins."""
UNKNOWN: Final = 32_767
"""Code of memory that a program outside of the sample may have written; it is never reported."""
MOST_ORIGINS: Final = 32_000
"""Limited because codes are int16."""
MOST_DEFECTS, MOST_EXAMPLES = 40, 4

EXPLANATIONS: Final = {
    OUT_OF_BOUNDS_READ: "reads outside the tensor",
    OUT_OF_BOUNDS_WRITE: "writes outside the tensor",
    READ_ONLY_WRITE: "writes to an input that a kernel may only read",
    UNINITIALISED_READ: "reads what nothing has written, and the result depends on it",
    WRITE_RACE: "programs of one launch use one address without atomics, and the result depends on their order",
    MASK_MISTAKE: "lanes that the mask switches off have no `other`: undefined, says Triton's documentation, and the "
    "result depends on them (Triton 3.7 puts zero there on gfx942 and sm_90)",
}


@dataclass(frozen=True)
class Site:
    """A source line of a kernel."""

    kernel: str
    file: str
    line: int

    @property
    def source(self) -> str:
        """The line's text, if the file can be read."""
        return linecache.getline(self.file, self.line).strip()


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
    severity: Literal["error", "warning"]
    """`error`, or `warning` for a mask mistake that is harmless as long as the compiler puts zero into such lanes."""
    note: str

    def message(self) -> dict[str, Any]:
        """Return the defect as values that JSON can hold."""
        return asdict(self)


@dataclass
class Finding:
    """A defect under construction."""

    kind: str
    site: Site
    tensor: str
    of_programs: int
    lanes: int = 0
    programs: set[Program] = field(default_factory=set[Program])
    examples: list[Example] = field(default_factory=list[Example])

    def add(self, program: Program, element: int, lanes: int) -> None:
        """Add `lanes` lanes of a program; keep a few as examples."""
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
    """The source of an undefined value; it becomes a defect when something depends on it."""

    kind: str
    site: Site
    tensor: str
    program: Program
    element: int
    of_programs: int
    lanes: int = 0
    reached: bool = False


class Ledger:
    """All defects of one watched call, and the origins of undefined values by code."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, Site, str], Finding] = {}
        self._origins: list[Origin] = []
        self._codes: dict[tuple[str, Site, str, Program], int] = {}
        self._shared: dict[tuple[str, Site, str], int] = {}
        self.races: set[int] = set()
        """Codes of races."""
        self.only_races = False
        """Whether a launch is being repeated, so that only races are recorded."""

    def code(self, kind: str, site: Site, tensor: str, program: Program, element: int, of_programs: int) -> int:
        """Return the code of an origin; beyond MOST_ORIGINS programs share one (0 if there is none)."""
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
        """Record the origins of these codes as defects: an address, branch or output depends on them."""
        for code in np.unique(codes).tolist():
            if NEVER_WRITTEN < code < UNKNOWN and not (origin := self._origins[code - NEVER_WRITTEN - 1]).reached:
                origin.reached = True
                self._add(origin)

    def forbidden(self, lanes: Origin) -> None:
        """Record lanes that went where they may not as a defect."""
        if not self.only_races:
            self._add(lanes)

    def _add(self, origin: Origin) -> None:
        key = (origin.kind, origin.site, origin.tensor)
        finding = self._findings.setdefault(key, Finding(*key, origin.of_programs))
        finding.add(origin.program, origin.element, origin.lanes)

    def defects(self) -> tuple[Defect, ...]:
        """Return the defects in the order in which they were found, at most a fixed number."""
        return tuple(finding.defect() for finding in list(self._findings.values())[:MOST_DEFECTS])

    @property
    def total(self) -> int:
        """Return the number of all defects, including those beyond that number."""
        return len(self._findings)
