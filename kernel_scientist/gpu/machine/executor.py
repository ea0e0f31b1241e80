"""Executes the launches of one submission in its worker, and tells what it did and what went wrong.

Runs in workers: standard library, numpy and torch only.
"""

import functools
import random
import time
from dataclasses import dataclass, field, replace

from kernel_scientist.gpu.interpreter.defect import Defect
from kernel_scientist.gpu.machine import lacking, program
from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.defects import defects
from kernel_scientist.gpu.machine.launch import Code, Fault, Finding, Memory, NotSimulatedError, Options, Result
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.listing import ListingError
from kernel_scientist.gpu.machine.program import ProgramError
from kernel_scientist.gpu.machine.sampler import Counted, Sampler, undone

Grid = tuple[int, int, int]
MOST_INSTRUCTIONS = 40_000_000_000
"""Wave instructions of one launch: an endless loop ends there, unless the call's time is over first."""
CALLS_BYTES = 1 << 16
"""Around the address of the buffer for calls of the host."""
CALLS_HOST = "s_sendmsg"
"""How code calls the host. Device libraries older than the compiler take the buffer's address from where 0 lies."""
PARTS = 64
"""A launch of which only a part may be run is divided into so many; the time is looked at between them."""


@dataclass
class Launched:
    """One launch."""

    kernel: str
    groups: int
    run: int
    """Workgroups that were executed."""
    counted: Counted | None = None
    """Its counts, if it was counted."""


@dataclass
class Executor:
    """Executes launches and keeps their findings."""

    library: Library
    threads: int
    seed: int = 0
    allocations: Allocations | None = None
    """The memory of the current call."""
    sample_s: float = 0.0
    """Seconds after which no further workgroups of a launch are run; 0: all are run."""
    sampler: Sampler | None = None
    """How launches are counted; None: they are not."""
    launched: list[Launched] = field(default_factory=list[Launched])
    findings: list[tuple[str, Grid, Finding]] = field(default_factory=list[tuple[str, Grid, Finding]])
    _codes: dict[str, Code] = field(default_factory=dict[str, Code])

    def code(self, text: str) -> Code:
        """Return loaded assembly. Raises NotSimulatedError if the machine cannot read it."""
        if text not in self._codes:
            try:
                self._codes[text] = Code.of(self.library, text)
            except (ListingError, ProgramError) as error:
                raise NotSimulatedError(f"its assembly is not one that the machine reads: {error}") from error
        return self._codes[text]

    def run(
        self,
        code: Code,
        name: str,
        grid: Grid,
        block: Grid,
        arguments: bytes,
        dynamic_lds: int,
        cooperative: bool = False,
    ) -> None:
        """Execute a launch. Raises NotSimulatedError at an instruction that is not known, RuntimeError without end."""
        assert self.allocations is not None, "a launch outside of a call"
        groups, memory = grid[0] * grid[1] * grid[2], self.allocations.memory()
        launched = Launched(name, groups, 0)
        self.launched.append(launched)
        if groups == 0:
            return
        parts = self._parts(groups, cooperative or code.communicates)
        run = functools.partial(self._run_part, code, name, grid, block, arguments, memory, dynamic_lds)
        samples, counts = None, None
        if self.sampler is not None and parts == [None]:
            samples = self.sampler.whole(code, name, grid, block, dynamic_lds)
        elif self.sampler is not None:
            with undone(memory, code):
                counts = self.sampler.sampled(run, code, name, grid, block, dynamic_lds)
        until = time.monotonic() + self.sample_s
        for part in parts:
            result = run(Options(groups=part, samples=samples, cooperative=cooperative))
            counts = result.counts or counts
            launched.run += groups if part is None else len(part)
            if self.sample_s and time.monotonic() > until:
                break
        if counts is not None:
            launched.counted = Counted(name, code.digest, grid, block, dynamic_lds, counts)

    def _run_part(
        self,
        code: Code,
        name: str,
        grid: Grid,
        block: Grid,
        arguments: bytes,
        memory: Memory,
        dynamic_lds: int,
        chosen: Options,
    ) -> Result:
        """Execute some workgroups of a launch. Raises as `run`."""
        options = replace(chosen, threads=self.threads, seed=self.seed, most_instructions=MOST_INSTRUCTIONS)
        result = launches.run(code, name, grid, block, arguments, memory, dynamic_lds, options)
        self.findings += [(name, grid, finding) for finding in result.findings]
        _require_known(code, name, result)
        if result.gave_up:
            raise RuntimeError(f"{name} does not end: {result.instructions:,} wave instructions were executed")
        return result

    def _parts(self, groups: int, whole: bool) -> list[tuple[int, ...] | None]:
        """Return the workgroups in the order in which parts of them run; `whole`: they need each other.

        A part is a run of neighbours: what they write lies together, so that little of the reference is needed to
        compare it. The first one has the first or the last workgroup, where masks matter.
        """
        if not self.sample_s or whole:
            return [None]
        size, rng = max(self.threads, -(-groups // PARTS)), random.SystemRandom()
        parts = [tuple(range(n, min(n + size, groups))) for n in range(0, groups, size)]
        edge = parts.pop(rng.choice((0, -1)))
        return [edge, *rng.sample(parts, len(parts))]

    def take(self) -> tuple[list[Defect], list[Launched]]:
        """Return the defects and the launches since the last call of this."""
        found = defects(self.findings, self.allocations.names if self.allocations else {})
        launched, self.launched, self.findings = self.launched, [], []
        return found, launched


def _require_known(code: Code, kernel: str, result: Result) -> None:
    """Raise NotSimulatedError if an instruction was executed that the machine does not know, or the host was called."""
    calls = any(one.mnemonic == CALLS_HOST for one in code.missing)
    buffers = (launches.HOST_CALLS, 0) if calls else (launches.HOST_CALLS,)
    for found in result.findings:
        if found.fault is Fault.READ_OUTSIDE and min(abs(found.address - n) for n in buffers) < CALLS_BYTES:
            line = f" (source line {found.statement.source_line})" if found.statement.source_line else ""
            raise NotSimulatedError(f"{kernel}: a call of the host{line}: printf, malloc and assert are not simulated")
        if found.fault is Fault.REFUSED:
            one = found.statement
            place = f"assembly line {one.line}" + (f", source line {one.source_line}" if one.source_line else "")
            why = lacking.reason(program.base_name(one.mnemonic))
            raise NotSimulatedError(f"{kernel}: {one.mnemonic} {one.operands} ({place}): {why}")
