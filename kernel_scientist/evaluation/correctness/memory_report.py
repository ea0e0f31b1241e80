"""The machine's report on what a kernel did to memory; a defect makes the kernel incorrect.

The report comes from an untrusted process: it can show that a kernel is wrong, but its absence proves nothing.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_scientist.gpu.machine.defect import Defect
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.validation import protocol_violation

MOST_TOLD, WORDS, NAME = 10, 400, 80


class LaunchedConfiguration(BaseModel):
    """One of an autotuner's configurations, with which it launched (`gpu.fake.jit`)."""

    model_config = ConfigDict(frozen=True)
    kernel: str
    numbers: tuple[int, ...]
    of: int = Field(ge=1, le=1 << 16)
    words: str


class Coverage(BaseModel):
    """How many programs of the launches were executed."""

    launches: int = 0
    programs_run: int = 0
    programs: int = 0
    programs_checked: int = 0
    """Also for races and values that nobody wrote."""
    kernels_checked: frozenset[str] = frozenset()
    """Names of the kernels of which at least one program was."""
    configurations: tuple[LaunchedConfiguration, ...] = ()
    """Of autotuners, in their turn."""
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """CPU time of the call."""


class CallReport(BaseModel):
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
    kernels: set[str] = field(default_factory=set[str])
    """Names of the kernels that checking runs have executed."""
    seconds: float = 0.0
    tried: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """Numbers of the configurations that were tried, or cannot be launched, by autotuned kernel and their number."""
    configurations: dict[str, int] = field(default_factory=dict[str, int])
    """How many there are, by the same."""
    latest: tuple[LaunchedConfiguration, ...] = ()
    """Those of the last call."""
    last: protocol.Header = field(default_factory=protocol.Header)
    """The last report."""

    @property
    def is_of_a_part(self) -> bool:
        """Whether the last call had several launches, not all of them executed whole."""
        try:
            done = CallReport.model_validate(self.last["calls"][-1]).coverage
        except (ValidationError, LookupError, TypeError):
            return False
        return done.launches > 1 and done.programs_run < done.programs

    @contextmanager
    def of_call(self, worker: WorkerClient, case: str) -> Generator[None]:
        """Add a worker's report on a call of a case, even if the call failed: the report may show the cause.

        Raises KernelFailure if the report contains an error.
        """
        self.latest = ()
        try:
            yield
        except KernelFailure as broken:
            if broken.verdict is Verdict.CRASHED and worker.alive():
                self._require(worker.memory_report(), case)
            raise
        self._require(worker.memory_report(), case)

    def _require(self, report: protocol.Header, case: str) -> None:
        self.last, defects = report, list[Defect]()
        for call in _calls(report):
            self.launches += call.coverage.launches
            self.run += call.coverage.programs_run
            self.programs += call.coverage.programs
            self.checked += call.coverage.programs_checked
            self.kernels |= call.coverage.kernels_checked
            self.seconds += call.coverage.seconds
            self.latest = call.coverage.configurations
            for one in self.latest:
                name = f"{one.kernel}, {one.of}"  # what is left after pruning may depend on the case
                self.tried.setdefault(name, set()).update(n for n in one.numbers if 0 <= n < one.of)
                self.configurations[name] = one.of
            defects += call.defects
        if defects:
            words = tuple(f"memory: {_sentence(d, case)}" for d in defects[:MOST_TOLD])
            raise KernelFailure(Verdict.INCORRECT, words[0], words)

    @property
    def untried(self) -> int:
        """How many calls would try the configurations that autotuners have and no call has tried."""
        return max((of - len(self.tried[name]) for name, of in self.configurations.items()), default=0)

    def with_configuration(self, failure: KernelFailure) -> KernelFailure:
        """Return a failure of the last call, with the configurations that autotuners took in it."""
        words = "; ".join(dict.fromkeys(f"{one.kernel} with {one.words}" for one in self.latest))[:WORDS]
        said = f"in a configuration that the autotuner may choose: {printable(words)}"
        return KernelFailure(failure.verdict, f"{failure.reason} ({said})", failure.evidence)

    def words(self, where: str) -> str:
        """Return a sentence that states how much was executed."""
        if not self.launches:
            return f"{where} no launch"
        share = "all" if self.run == self.programs else f"{self.run} of {self.programs}"
        words = f"{where} {share} programs of {self.launches} launches, every address checked"
        if not self.checked:
            return words
        share = "all" if self.checked == self.run else f"{self.checked} of {self.run}"
        words = f"{words}, {share} of them for races and uninitialised reads"
        every = sum(self.configurations.values())
        tried = sum(map(len, self.tried.values()))
        return f"{words}, in {tried} of {every} configurations of the autotuner" if every else words


def _sentence(defect: Defect, case: str) -> str:
    unit = "byte" if defect.tensor in ("LDS", "scratch") else "element"
    place = ", ".join(f"workgroup {e.program} {unit} {e.element}" for e in defect.examples[:2])
    kernel = defect.kernel if len(defect.kernel) <= NAME else f"{defect.kernel[:NAME]}..."  # templates have long names
    kind = defect.kind if defect.kind.endswith(f" of {defect.tensor}") else f"{defect.kind} of {defect.tensor}"
    where = f"{kind} in {kernel}, {defect.where}"
    return printable(f"{where}: {defect.note}; in case {case}, {place}")[:WORDS]


def _calls(report: protocol.Header) -> list[CallReport]:
    calls: Any = report.get("calls")
    try:
        return [CallReport.model_validate(call) for call in calls or ()]
    except (ValidationError, TypeError) as error:
        raise protocol_violation("no report on memory") from error
