"""Executes the launches of one submission in its worker, and tells what it did and what went wrong.

Runs in workers: standard library, numpy and torch only.
"""

import functools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine import findings, lacking, program
from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.checking import Checks, RunOutcome
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.defect import Defect
from kernel_scientist.gpu.machine.defects import defects
from kernel_scientist.gpu.machine.dispatch import HOST_CALLS, Grid, KernelLaunch, Options
from kernel_scientist.gpu.machine.input_memory import InputMemory
from kernel_scientist.gpu.machine.launch import Fault, Finding, LaunchResult, NotSimulatedError
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.listing import ListingError
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.program import ProgramError
from kernel_scientist.gpu.machine.sampler import Counted, Sampler, undone
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.hardware import occupancy

MOST_INSTRUCTIONS = 40_000_000_000
"""Wave instructions of one launch: an endless loop ends there, unless the call's time is over first."""
CALLS_BYTES = 1 << 16
"""Around the address of the buffer for calls of the host."""
LEAST_GROUPS = 16
"""Workgroups of a part of a launch: fewer may write less than their share without being wrong."""
PARTS = 64
"""A launch of which only a part may be run is divided into so many."""


@dataclass
class Launched:
    """One launch."""

    kernel: str
    groups: int
    run: int
    """Workgroups that were executed."""
    checked: int = 0
    """Workgroups that a checking run executed."""
    counted: Counted | None = None
    """Its counts, if it was counted."""


@dataclass
class Executor:
    """Executes launches and keeps their findings."""

    library: Library
    threads: int
    facts: Facts | None = None
    """The GPU's. None: all workgroups of a launch run at a time."""
    seed: int = 0
    pattern: int = 0
    """The byte that memory holds which nobody wrote."""
    allocations: Allocations | None = None
    """The memory of the current call."""
    checks: Checks | None = None
    """What is known of the current call if its launches are checked; otherwise they are only executed."""
    sample_s: float = 0.0
    """Seconds after which no further workgroups of a launch are run; 0: all are run."""
    descending_sums: bool = False
    """Whether matrix instructions add their products in descending order."""
    sampler: Sampler | None = None
    """How launches are counted; None: they are not."""
    memory: InputMemory = field(default_factory=InputMemory)
    """The inputs' memory, which is closed to host code."""
    launched: list[Launched] = field(default_factory=list[Launched])
    findings: list[tuple[str, Grid, Finding]] = field(default_factory=list[tuple[str, Grid, Finding]])
    sources: Sources = field(default_factory=Sources)
    _tensors: dict[int, str] = field(default_factory=dict[int, str])
    """What launches that wait for ever call their tensors."""
    _codes: dict[str, Code] = field(default_factory=dict[str, Code])

    def code(self, text: str) -> Code:
        """Return loaded assembly. Raises NotSimulatedError if the machine cannot read it."""
        if text not in self._codes:
            try:
                self._codes[text] = Code(self.library, text)
            except (ListingError, ProgramError) as error:
                raise NotSimulatedError(f"its assembly is not one that the machine reads: {error}") from error
        return self._codes[text]

    def run(self, launch: KernelLaunch) -> None:
        """Execute a launch. Raises NotSimulatedError at an instruction that is not known, RuntimeError without end."""
        with self.memory.used():
            self._run(launch)

    def _run(self, launch: KernelLaunch) -> None:
        assert self.allocations is not None, "a launch outside of a call"
        memory = self.allocations.memory()
        launched = Launched(launch.code.names[launch.name], launch.groups, 0)
        self.launched.append(launched)
        if launch.groups == 0 or (self.checks is not None and self._checked(launch, memory, self.checks, launched)):
            return
        parts = self._parts(launch.groups, launch.cooperative or launch.code.communicates)
        run = functools.partial(self._run_part, launch, memory)
        samples, counts = None, None
        if self.sampler is not None and parts == [None]:
            samples = self.sampler.whole(launch)
        elif self.sampler is not None:
            with undone(memory, launch.code):
                counts = self.sampler.sampled(run, launch)
        until = time.monotonic() + self.sample_s
        for piece in self._pieces(parts):
            result = run(Options(groups=piece, samples=samples))
            counts = result.counts or counts
            launched.run += launch.groups if piece is None else len(piece)
            if self.sample_s and launched.run >= LEAST_GROUPS and time.monotonic() > until:
                break
        if counts is not None:
            launched.counted = Counted(launch, counts)

    def _checked(self, launch: KernelLaunch, memory: Memory, checks: Checks, launched: Launched) -> bool:
        """Execute a launch in a checking run. Returns False if it has to run plainly, and memory is as before."""
        if checks.left > 0 and not launch.cooperative and checks.follows(launch.code):
            tried = checks.run(launch, memory, self._options(launch, Options(), checks.left))
            checks.left -= tried.result.instructions
            launched.checked = tried.groups
            if tried.outcome is not RunOutcome.TOO_MANY:
                launched.run = launch.groups
                self._note(launch, tried.result, launch.groups, is_checked=True)
                return True
        checks.settle(memory, self.pattern)
        return False

    def _run_part(self, launch: KernelLaunch, memory: Memory, chosen: Options) -> LaunchResult:
        """Execute some workgroups of a launch. Raises as `run`."""
        result = launches.run(launch, memory, self._options(launch, chosen, MOST_INSTRUCTIONS))
        self._note(launch, result, launch.groups if chosen.groups is None else len(chosen.groups))
        return result

    def _options(self, launch: KernelLaunch, chosen: Options, most: int) -> Options:
        run = {"threads": self.threads, "seed": self.seed, "descending_sums": self.descending_sums}
        return replace(chosen, most_instructions=most, resident=self._resident(launch), **run)

    def _resident(self, launch: KernelLaunch) -> int:
        """Return how many workgroups the GPU runs at a time; 0 if that is not known."""
        if self.facts is None:
            return 0
        needs = launch.waves, launch.kernel.descriptor.get("next_free_vgpr", 0), launch.lds_bytes
        return self.facts.units * max(1, occupancy.resident(self.facts.arch, *needs))

    def _note(self, launch: KernelLaunch, result: LaunchResult, groups: int, is_checked: bool = False) -> None:
        """Keep what is wrong. `groups`: those that were to run. Raises as `run`."""
        name = launch.code.names[launch.name]
        full = ""
        if result.gave_up and result.started < groups and self.facts is not None:
            runs = f"{self.facts.name} runs {self._resident(launch)} at a time, and each of those waits"
            full = f"its grid has {launch.groups}, {runs}"
        if is_checked and full and self.checks is not None:
            self.checks.note(full)
        told = (replace(one, note=full) if one.fault is Fault.DEADLOCK else one for one in result.findings)
        self.findings += [(name, launch.grid, finding) for finding in told]
        require_known(launch.code, name, result, self.sources)
        if not result.gave_up:
            return
        self._tensors |= launch.tensors
        if not is_checked and not any(one.fault is Fault.DEADLOCK for one in result.findings):
            raise RuntimeError(f"{name} does not end: {result.instructions:,} wave instructions were executed")
        if full:
            raise RuntimeError(f"{name} waits for programs that cannot run: {full}")
        raise RuntimeError(f"{name} does not end: each program that has not ended waits for another one")

    def _parts(self, groups: int, whole: bool) -> list[tuple[int, ...] | None]:
        """Return the workgroups in the order in which parts of them run; `whole`: they need each other.

        A part is a run of neighbours: what they write lies together, so that little of the reference is needed to
        compare it. The first one begins with the first or the last workgroup, where masks matter.
        """
        if not self.sample_s or whole:
            return [None]
        size, rng = max(self.threads, -(-groups // PARTS)), random.SystemRandom()
        parts = [tuple(range(n, min(n + size, groups))) for n in range(0, groups, size)]
        last = rng.choice((False, True))
        edge = parts.pop()[::-1] if last else parts.pop(0)
        return [edge, *rng.sample(parts, len(parts))]

    def _pieces(self, parts: Sequence[tuple[int, ...] | None]) -> Iterator[tuple[int, ...] | None]:
        """Return what runs at once: as many workgroups as there are threads, then twice as many, and so on, up to a
        part. One part of a slow kernel may take minutes, and the time is looked at between pieces."""
        most = self.threads
        for part in parts:
            left = part
            while left:
                yield left[:most]
                left, most = left[most:], 2 * most
            if part is None:
                yield None

    def take(self) -> tuple[list[Defect], list[Launched]]:
        """Return the defects and the launches since the last call of this."""
        names = self._tensors | (self.allocations.names if self.allocations else {})
        found = defects(self.findings, names, self.sources)
        if self.checks is not None:
            found += findings.defects(self.checks, self.sources)
        launched, self.launched, self.findings, self._tensors = self.launched, [], [], {}
        return found, launched


def require_known(code: Code, kernel: str, result: LaunchResult, sources: Sources) -> None:
    """Raise NotSimulatedError if an instruction was executed that the machine does not know, or the host was called."""
    buffers = (HOST_CALLS, 0) if code.calls_host else (HOST_CALLS,)
    for found in result.findings:
        if found.fault is Fault.READ_OUTSIDE and min(abs(found.address - n) for n in buffers) < CALLS_BYTES:
            line, _, called = sources.told(found.places)
            where = f" (source line {line}{called})" if line else ""
            raise NotSimulatedError(f"{kernel}: a call of the host{where}: printf, malloc and assert are not simulated")
        if found.fault is Fault.REFUSED:
            one = found.statement
            line, _, called = sources.told(found.places)
            place = f"assembly line {one.line}" + (f", source line {line}{called}" if line else "")
            why = lacking.reason(program.base_name(one.mnemonic))
            raise NotSimulatedError(f"{kernel}: {one.mnemonic} {one.operands} ({place}): {why}")
