"""Executes the launches of one submission in its worker, and tells what it did and what went wrong.

Runs in workers: standard library, numpy and torch only.
"""

import functools
import hashlib
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kernel_scientist.gpu.interpreter.defect import Defect
from kernel_scientist.gpu.machine import findings, lacking, program
from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.checking import Checks
from kernel_scientist.gpu.machine.defects import defects
from kernel_scientist.gpu.machine.launch import Code, Fault, Finding, Memory, NotSimulatedError, Options, Result
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.listing import ListingError
from kernel_scientist.gpu.machine.program import ProgramError
from kernel_scientist.gpu.machine.sampler import Counted, Sampler, undone
from kernel_scientist.gpu.machine.sources import Sources

Grid = tuple[int, int, int]
MOST_INSTRUCTIONS = 40_000_000_000
"""Wave instructions of one launch: an endless loop ends there, unless the call's time is over first."""
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
    checks: Checks | None = None
    """What is known of the current call if its launches are checked; otherwise they are only executed."""
    sample_s: float = 0.0
    """Seconds after which no further workgroups of a launch are run; 0: all are run."""
    sampler: Sampler | None = None
    """How launches are counted; None: they are not."""
    launched: list[Launched] = field(default_factory=list[Launched])
    findings: list[tuple[str, Grid, Finding]] = field(default_factory=list[tuple[str, Grid, Finding]])
    sources: Sources = field(default_factory=Sources)
    _codes: dict[str, Code] = field(default_factory=dict[str, Code])

    def code(self, text: str) -> Code:
        """Return loaded assembly. Raises NotSimulatedError if the machine cannot read it."""
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in self._codes:
            try:
                self._codes[key] = Code.of(self.library, text)
            except (ListingError, ProgramError) as error:
                raise NotSimulatedError(f"its assembly is not one that the machine reads: {error}") from error
        return self._codes[key]

    def run(
        self,
        code: Code,
        name: str,
        grid: Grid,
        block: Grid,
        arguments: bytes,
        dynamic_lds: int,
        names: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Execute a launch. `names`: of its tensors, by their addresses.

        Raises NotSimulatedError at an instruction that is not known, RuntimeError without end.
        """
        assert self.allocations is not None, "a launch outside of a call"
        groups, memory = grid[0] * grid[1] * grid[2], self.allocations.memory()
        launched = Launched(code.names[name], groups, 0)
        self.launched.append(launched)
        if groups == 0:
            return
        parts = self._parts(groups, any("_atomic_" in s.mnemonic for s in code.listing.statements))
        run = functools.partial(self._run_part, code, name, grid, block, arguments, memory, dynamic_lds, names)
        samples, counts = None, None
        if self.sampler is not None and parts == [None]:
            samples = self.sampler.whole(code, name, grid, block, dynamic_lds)
        elif self.sampler is not None:
            with undone(memory, code):
                counts = self.sampler.sampled(run, code, name, grid, block, dynamic_lds)
        until = time.monotonic() + self.sample_s
        for part in parts:
            result = run(Options(groups=part, samples=samples))
            counts = result.counts or counts
            launched.run += groups if part is None else len(part)
            if self.sample_s and time.monotonic() > until:
                break
        if counts is not None:
            launched.counted = Counted(name, self._digest(code), grid, block, dynamic_lds, counts)

    def _run_part(
        self,
        code: Code,
        name: str,
        grid: Grid,
        block: Grid,
        arguments: bytes,
        memory: Memory,
        dynamic_lds: int,
        names: Mapping[int, str],
        chosen: Options,
    ) -> Result:
        """Execute some workgroups of a launch. Raises as `run`."""
        options = replace(chosen, threads=self.threads, seed=self.seed, most_instructions=MOST_INSTRUCTIONS)
        if self.checks is None:
            result = launches.run(code, name, grid, block, arguments, memory, dynamic_lds, options)
        else:
            result = self.checks.run(code, name, grid, block, arguments, memory, dynamic_lds, options, names)
        said = code.names[name]
        self.findings += [(said, grid, finding) for finding in result.findings]
        _require_known(said, result, self.sources)
        if result.gave_up:
            raise RuntimeError(f"{said} does not end: {result.instructions:,} wave instructions were executed")
        return result

    def _digest(self, code: Code) -> str:
        return next((key for key, one in self._codes.items() if one is code), "")

    def _parts(self, groups: int, atomic: bool) -> list[tuple[int, ...] | None]:
        """Return the workgroups in the order in which parts of them run. With atomic operations they need each other.

        A part is a run of neighbours: what they write lies together, so that little of the reference is needed to
        compare it. The first one has the first or the last workgroup, where masks matter.
        """
        if not self.sample_s or atomic:
            return [None]
        size, rng = max(self.threads, -(-groups // PARTS)), random.SystemRandom()
        parts = [tuple(range(n, min(n + size, groups))) for n in range(0, groups, size)]
        edge = parts.pop(rng.choice((0, -1)))
        return [edge, *rng.sample(parts, len(parts))]

    def take(self) -> tuple[list[Defect], list[Launched]]:
        """Return the defects and the launches since the last call of this."""
        found = defects(self.findings, self.allocations.names if self.allocations else {}, self.sources)
        if self.checks is not None:
            found += findings.defects(self.checks, self.sources)
        launched, self.launched, self.findings = self.launched, [], []
        return found, launched


def _require_known(kernel: str, result: Result, sources: Sources) -> None:
    """Raise NotSimulatedError if an instruction was executed that the machine does not know."""
    for found in result.findings:
        if found.fault is Fault.REFUSED:
            one = found.statement
            line, _ = sources.quoted(one.file, one.source_line)
            place = f"assembly line {one.line}" + (f", source line {line}" if one.source_line else "")
            why = lacking.reason(program.base_name(one.mnemonic))
            raise NotSimulatedError(f"{kernel}: {one.mnemonic} {one.operands} ({place}): {why}")
