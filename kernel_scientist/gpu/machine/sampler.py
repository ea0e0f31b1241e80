"""Counts a launch by samples of its workgroups.

Two samples: workgroups from the first to the last of the grid, for the work of an average one, and one die's share of
those that run first, for the lines that its L2 serves to several of them. Runs in workers: standard library and numpy.
"""

import contextlib
import ctypes
import itertools
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.counts import ACCESSED, MOST_LAUNCHES, MOST_ROWS, Counts, Sample
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.launch import LaunchResult
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.program import Array
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.hardware import occupancy

DIES = 8
"""Workgroups go to them in turn, and each has an L2 of its own (`native/control.cpp`, `HW_XCC_ID`)."""
SPREAD, SHARING = 12, 32
"""Workgroups of the two samples."""
WHOLE = 128
"""Workgroups of the first sample if they differ in their work."""
PIECE = 1 << 20
"""Bytes of memory that are kept together while a launch is undone."""
BUDGET = 20_000_000
"""Wave instructions after which the first sample does not grow any more, and those of the second one together. A
workgroup of a persistent kernel has more than its part of them: its first tiles are those that run beside the others',
as the only tile of other kernels' workgroups."""


@dataclass(frozen=True)
class Counted:
    """The counts of one launch."""

    launch: KernelLaunch
    counts: Counts

    def plain(self, sources: Sources) -> dict[str, Any]:
        """Return it as data; instructions that were not executed are left out. `sources`: of the submission."""
        launch, accessed, counts = self.launch, self.counts.accessed, self.counts
        there = accessed["executed"].nonzero()[0]
        places = [launch.code.lines.condensed(int(n)) for n in there]
        names = ("waves", "steps", "rounds", "reloads", "overlapped", "shared", "alone")
        return {
            "kernel": launch.name,
            "code": launch.code.listing.digest,
            "grid": launch.grid,
            "block": launch.block,
            "dynamic_lds": launch.dynamic_lds,
            "instructions": [int(n) for n in there],
            "source_lines": [sources.told(chain)[0] for chain in places],
            "callers": [sources.told(chain[1:])[0] for chain in places],
            **{name: [int(n) for n in accessed[name][there]] for name in ACCESSED.names or ()},
            "work": counts.work,
            "storages": {str(start): size for start, size in counts.touched},
            **{name: getattr(counts, name) for name in names},
        }


def reported(counted: Sequence[Counted], sources: Sources) -> list[dict[str, Any]]:
    """Return the counts of a call's launches as data; none if they are more than a message holds."""
    rows = sum(np.count_nonzero(one.counts.accessed["executed"]) for one in counted)
    return [one.plain(sources) for one in counted] if len(counted) <= MOST_LAUNCHES and rows <= MOST_ROWS else []


@dataclass(frozen=True)
class Sampler:
    """Counts launches for a GPU."""

    facts: Facts

    def whole(self, launch: KernelLaunch) -> tuple[Sample, ...]:
        """Return what every workgroup of a launch is counted for, if all of them run."""
        groups = launch.groups
        spread, sharing = set(_spread(groups, WHOLE)), set(self._sharing(launch))
        both = ((Sample.SPREAD, spread), (Sample.SHARING, sharing))
        return tuple(Sample(sum(kind for kind, chosen in both if n in chosen)) for n in range(groups))

    def sampled(self, run: Callable[[Options], LaunchResult], launch: KernelLaunch) -> Counts:
        """Return the counts of samples. `run` executes workgroups of the launch; what it changes must be undone."""
        groups = launch.groups
        first = _spread(groups, SPREAD)
        found = _counted(run, first, Sample.SPREAD)
        if len(set(found.work)) > 1 and len(first) < groups:
            size = max(1, int(BUDGET / max(1, found.steps / len(first))))
            more = [n for n in _spread(groups, min(WHOLE, size)) if n not in first]
            found = found + _counted(run, more, Sample.SPREAD) if more else found
        return found + _counted(run, self._sharing(launch), Sample.SHARING, BUDGET // SHARING)

    def _sharing(self, launch: KernelLaunch) -> list[int]:
        """Return one die's share of the workgroups that run first."""
        groups, registers = launch.groups, launch.kernel.descriptor.get("next_free_vgpr", 0)
        resident = occupancy.resident(self.facts.arch, launch.waves, registers, launch.lds_bytes)
        slots = self.facts.units * max(1, resident)
        return list(range(min(groups - 1, DIES // 2), min(groups, slots), DIES))[:SHARING]


def _counted(run: Callable[[Options], LaunchResult], groups: list[int], sample: Sample, most: int = 0) -> Counts:
    """Return the counts of some workgroups. `most`: wave instructions after which one of the second sample ends."""
    counts = run(Options(groups=tuple(groups), samples=(sample,) * len(groups), most_sharing=most)).counts
    assert counts is not None
    return counts


def _spread(groups: int, most: int) -> list[int]:
    """Return the first workgroup, the last one, and one of each part of the grid between them."""
    if groups <= most or most < 3:
        return list(range(min(groups, max(1, most))))
    rng, edges = random.Random(groups), np.linspace(1, groups - 1, most - 1).astype(int)
    return [0, groups - 1, *(rng.randrange(a, b) for a, b in itertools.pairwise(edges))]


@contextlib.contextmanager
def undone(memory: Memory, code: Code) -> Generator[None]:
    """Put back what the context changes in the memory that a launch may write, and in the code's own data."""
    own = code.program.data
    places = [*memory.writable(), (int(own.ctypes.data), own.nbytes)]
    pieces = [piece for start, size in places for piece in _pieces(start, size)]
    before = [(piece, piece.copy() if piece.view(bool).any() else None) for piece in pieces]
    try:
        yield
    finally:
        for piece, content in before:
            if content is not None:
                piece[:] = content
            elif piece.view(bool).any():
                piece[:] = 0


def _pieces(start: int, size: int) -> list[Array]:
    """Return views of parts of memory. Of a large allocation most are zero, and need no copy."""
    whole = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
    return [whole[n : n + PIECE] for n in range(0, size, PIECE)]
