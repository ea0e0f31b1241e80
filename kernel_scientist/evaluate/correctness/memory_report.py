"""The memory checker's report on an interpreted kernel; a defect makes the kernel incorrect.

The report comes from an untrusted process: it can show that a kernel is wrong, but its absence proves nothing.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from kernel_scientist.gpu.interpreter.defect import Defect
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.validation import protocol_violation

MOST_TOLD, WORDS = 10, 300


class Coverage(BaseModel):
    """How many programs of the launches were executed."""

    launches: int = 0
    programs_run: int = 0
    programs: int = 0
    programs_checked: int = 0
    """By the machine also for races and values that nobody wrote; Triton's interpreter does that anyway."""


class Call(BaseModel):
    """The report on one call."""

    defects: tuple[Defect, ...]
    coverage: Coverage


@dataclass
class MemoryReports:
    """Accumulated reports of the memory checker on one kernel."""

    launches: int = 0
    run: int = 0
    programs: int = 0
    checked: int = 0
    warnings: set[str] = field(default_factory=set[str])
    """Warnings as sentences: shown as evidence, without effect on the verdict."""

    last: protocol.Header = field(default_factory=protocol.Header)
    """The last report."""

    @contextmanager
    def of_call(self, worker: WorkerClient) -> Generator[None]:
        """Add a worker's report on a call, even if the call failed: the report may show the cause.

        Raises KernelFailure if the report contains an error.
        """
        try:
            yield
        except KernelFailure as broken:
            if broken.verdict is Verdict.CRASHED and worker.alive():
                self._require(worker.memory_report())
            raise
        self._require(worker.memory_report())

    def _require(self, report: protocol.Header) -> None:
        self.last, defects = report, list[Defect]()
        for call in _calls(report):
            self.launches += call.coverage.launches
            self.run += call.coverage.programs_run
            self.programs += call.coverage.programs
            self.checked += call.coverage.programs_checked
            defects += call.defects
        self.warnings |= {_sentence(d) for d in defects[:MOST_TOLD] if d.severity == "warning"}
        errors = [d for d in defects if d.severity == "error"]
        if errors:
            words = tuple(f"memory: {_sentence(d)}" for d in errors[:MOST_TOLD])
            raise KernelFailure(Verdict.INCORRECT, words[0], words)

    def words(self, where: str) -> str:
        """Return a sentence that states how much was executed."""
        if not self.launches:
            return f"{where} no launch"
        share = "all" if self.run == self.programs else f"{self.run} of {self.programs}"
        words = f"{where} {share} programs of {self.launches} launches, every address checked"
        if not self.checked:
            return words
        share = "all" if self.checked == self.run else f"{self.checked} of {self.run}"
        return f"{words}, {share} of them for races and uninitialised reads"


def _sentence(defect: Defect) -> str:
    place = ", ".join(f"program {e.program} element {e.element}" for e in defect.examples[:2])
    where = f"{defect.kind} of {defect.tensor} in {defect.kernel}, line {defect.line} ({defect.source})"
    return printable(f"{where}: {defect.note}; {place}")[:WORDS]


def _calls(report: protocol.Header) -> list[Call]:
    calls: Any = report.get("calls")
    try:
        return [Call.model_validate(call) for call in calls or ()]
    except (ValidationError, TypeError) as error:
        raise protocol_violation("no report on memory") from error
