"""Executes the launches of one submission in its worker, and tells what it did and what went wrong.

Runs in workers: standard library, numpy and torch only.
"""

import hashlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kernel_scientist.gpu.interpreter.defect import Defect
from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.defects import defects
from kernel_scientist.gpu.machine.launch import Code, Fault, Finding, Options
from kernel_scientist.gpu.machine.library import Library

Grid = tuple[int, int, int]
MOST_INSTRUCTIONS = 40_000_000_000
"""Wave instructions of one launch: an endless loop ends there, unless the call's time is over first."""
PARTS = 64
"""A launch of which only a part may be run is divided into so many; the time is looked at between them."""


class RefusedError(Exception):
    """The machine does not execute this launch."""


@dataclass
class Launched:
    """One launch."""

    kernel: str
    groups: int
    run: int
    """Workgroups that were executed."""


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
    launched: list[Launched] = field(default_factory=list[Launched])
    findings: list[tuple[str, Grid, Finding]] = field(default_factory=list[tuple[str, Grid, Finding]])
    _codes: dict[str, Code] = field(default_factory=dict[str, Code])

    def code(self, text: str) -> Code:
        """Return loaded assembly."""
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in self._codes:
            self._codes[key] = Code.of(self.library, text)
        return self._codes[key]

    def run(self, code: Code, name: str, grid: Grid, block: Grid, arguments: bytes, dynamic_lds: int) -> None:
        """Execute a launch. Raises RefusedError if an instruction is not known, or if it does not end."""
        assert self.allocations is not None, "a launch outside of a call"
        groups, memory = grid[0] * grid[1] * grid[2], self.allocations.memory()
        launched = Launched(name, groups, 0)
        self.launched.append(launched)
        if groups == 0:
            return
        until = time.monotonic() + self.sample_s
        for part in self._parts(groups, any("_atomic_" in s.mnemonic for s in code.listing.statements)):
            options = Options(self.threads, self.seed, most_instructions=MOST_INSTRUCTIONS, groups=part)
            result = launches.run(code, name, grid, block, arguments, memory, dynamic_lds, options)
            launched.run += groups if part is None else len(part)
            self.findings += [(name, grid, finding) for finding in result.findings]
            refused = next((f for f in result.findings if f.fault is Fault.REFUSED), None)
            if refused is not None:
                statement = refused.statement
                raise RefusedError(
                    f"{name}: instruction {statement.mnemonic} {statement.operands} (line {statement.line} of its "
                    f"assembly, source line {statement.source_line}) is not one that the machine executes"
                )
            if result.gave_up:
                raise RefusedError(f"{name} does not end: {result.instructions:,} wave instructions were executed")
            if self.sample_s and time.monotonic() > until:
                break

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

    def told(self) -> tuple[list[Defect], dict[str, int]]:
        """Return the defects since the last call of this, and how many workgroups were run."""
        found = defects(self.findings, self.allocations.names if self.allocations else {})
        runs = [launched for launched in self.launched if launched.groups]
        coverage = {
            "launches": len(runs),
            "programs": sum(one.groups for one in runs),
            "programs_run": sum(one.run for one in runs),
        }
        self.findings.clear()
        return found, coverage

    def by_kernel(self) -> list[tuple[str, int, int]]:
        """Return kernel, executed and all workgroups of the launches since the last call of this."""
        run, all_ = Counter[str](), Counter[str]()
        for one in self.launched:
            run[one.kernel] += one.run
            all_[one.kernel] += one.groups
        self.launched.clear()
        return [(name, run[name], all_[name]) for name in all_]


def loaded(path: str) -> Library:
    """Return the native library that the evaluator built."""
    from kernel_scientist.gpu.machine import library

    return library.loaded(Path(path))
