"""What an interpreted kernel did to memory, as its worker reports it: a defect makes it incorrect.

The report is an untrusted process's: it can show that a kernel is wrong, its absence shows nothing.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable

MOST_TOLD, WORDS = 10, 300


class Example(BaseModel):
    """One lane of one program."""

    program: tuple[int, int, int]
    element: int


class Defect(BaseModel):
    """What was seen at a line (`inspection.defect.Defect`)."""

    kind: str
    kernel: str
    line: int
    source: str
    tensor: str
    lanes: int
    programs: int
    of_programs: int
    examples: tuple[Example, ...]
    severity: Literal["error", "warning"]
    """A warning is what goes well with today's compilers and is promised by none."""
    note: str

    def words(self) -> str:
        """Return it in a sentence."""
        place = ", ".join(f"program {e.program} element {e.element}" for e in self.examples[:2])
        text = f"{self.kind} of {self.tensor} in {self.kernel}, line {self.line} ({self.source}): {self.note}; {place}"
        return printable(text)[:WORDS]


class Coverage(BaseModel):
    """How much of the launches was executed."""

    launches: int = 0
    programs_run: int = 0
    programs: int = 0


class Call(BaseModel):
    """What was seen in one call."""

    defects: tuple[Defect, ...]
    coverage: Coverage


@dataclass
class Watch:
    """Adds up what was seen of a kernel."""

    launches: int = 0
    run: int = 0
    programs: int = 0
    warnings: set[str] = field(default_factory=set[str])
    """In words; evidence, not a verdict."""

    def require(self, report: protocol.Header) -> None:
        """Take a worker's report. Raises KernelFailure where memory was used wrongly."""
        defects: list[Defect] = []
        for call in _calls(report):
            self.launches += call.coverage.launches
            self.run += call.coverage.programs_run
            self.programs += call.coverage.programs
            defects += call.defects
        self.warnings |= {d.words() for d in defects[:MOST_TOLD] if d.severity == "warning"}
        errors = [d for d in defects if d.severity == "error"]
        if errors:
            words = tuple(f"memory: {d.words()}" for d in errors[:MOST_TOLD])
            raise KernelFailure(Verdict.INCORRECT, words[0], words)

    def words(self, where: str = "interpreted:") -> str:
        """Return how much was covered."""
        if not self.launches:
            return f"{where} no launch was interpreted"
        share = "all" if self.run == self.programs else f"{self.run} of {self.programs}"
        return f"{where} {share} programs of {self.launches} launches, every address watched"


def _calls(report: protocol.Header) -> list[Call]:
    calls: Any = report.get("calls")
    try:
        return [Call.model_validate(call) for call in calls or ()]
    except (ValidationError, TypeError) as error:
        raise KernelFailure(Verdict.REJECTED, "its worker broke the protocol: no report on memory") from error
