"""What a counted run of a launch returns: accesses per instruction, lines of memory, waits.

Runs in workers: standard library and numpy only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import waits
from kernel_scientist.gpu.machine.listing import Listing, Statement
from kernel_scientist.gpu.machine.program import Array

BEHAVIOUR = np.dtype([("role", "u1"), ("left", "u1")])
ACCESSED = np.dtype([(name, "u8") for name in ("executed", "asked", "lines", "requests", "conflicts", "waits")])
TOTALS = np.dtype([(name, "u8") for name in ("waves", "steps", "rounds", "reloads", "overlapped", "shared", "alone")])
COUNTING = np.dtype(
    [(name, "u8") for name in ("behaviour", "accessed", "samples", "work", "touched", "totals", "banks")]
)
"""These four as in `native/counter.h`."""
MOST_LAUNCHES, MOST_ROWS = 256, 100_000
"""Launches of a call whose counts are reported, and their instructions: some 4 MB of `sandbox.protocol`'s 9."""
MOST_OPERATIONS, MOST_STORAGES = 256, 64
"""Operations of torch in a call that are noted, and storages of one. One more is noted if there are more."""
NONE, LOAD, SCRATCH_LOAD, OTHER, WAIT = range(5)
"""What an instruction means for vmcnt."""
BANKS = {"gfx942": 32}
"""Banks of LDS that conflicts are counted for; gfx950 has 64, but which lanes it serves together is not published."""
_MEMORY = re.compile(r"(?:t?buffer|global|flat|(scratch))_(load|store|atomic)_")


class Sample(IntFlag):
    """Which sample a workgroup belongs to."""

    SPREAD = 1
    """Those that stand for the whole grid."""
    SHARING = 2
    """Those that share an L2 at a time."""


@dataclass(frozen=True)
class Counts:
    """Counts of the workgroups of a sample, summed over them."""

    accessed: Array
    """Of the spread sample, by instruction: waves that executed it, bytes of their active lanes, distinct lines of each
    access, lines of these that the workgroup's L1 does not hold, cycles of bank conflicts in LDS, and waits that are
    rounds."""
    work: tuple[int, ...]
    """Wave instructions of each workgroup of the spread sample."""
    touched: tuple[tuple[int, int], ...]
    """Address and size of the allocations that were used."""
    waves: int
    """Waves of the spread sample, and in the next four sums over them."""
    steps: int
    """Instructions."""
    rounds: int
    """Waits for a load that was issued after the wave waited last."""
    reloads: int
    """Those of them that wait for scratch memory only."""
    overlapped: int
    """Instructions between the issue of these loads and the wait for them."""
    shared: int
    """Distinct lines of all workgroups of the sharing sample."""
    alone: int
    """Lines that their L1s do not hold, summed over them."""

    def __add__(self, other: "Counts") -> "Counts":
        accessed = np.array(self.accessed)
        for name in ACCESSED.names or ():
            accessed[name] += other.accessed[name]
        sums = {n: getattr(self, n) + getattr(other, n) for n in TOTALS.names or ()}
        touched = tuple(sorted({*self.touched, *other.touched}))
        return replace(self, accessed=accessed, work=(*self.work, *other.work), touched=touched, **sums)


@dataclass
class CountBuffers:
    """The arrays of a counted run, which the native library fills."""

    listing: Listing
    samples: Array
    """A `Sample` per workgroup that runs."""
    table: Array
    """What the launch may use."""
    arrays: dict[str, Array] = field(init=False)
    counting: Array = field(init=False)

    def __post_init__(self) -> None:
        number = len(self.listing.statements)
        self.arrays = {
            "behaviour": behaviour(self.listing.statements),
            "accessed": np.zeros(number, ACCESSED),
            "samples": self.samples,
            "work": np.zeros(len(self.samples), np.uint64),
            "touched": np.zeros(len(self.table), np.uint8),
            "totals": np.zeros((), TOTALS),
        }
        self.counting = np.zeros((), COUNTING)
        for name, array in self.arrays.items():
            self.counting[name] = array.ctypes.data
        self.counting["banks"] = BANKS.get(self.listing.arch, 0)

    def counts(self) -> Counts:
        """Return what was counted."""
        totals: Any = self.arrays["totals"]
        used = self.table[self.arrays["touched"] == 1]
        spread = (self.samples & Sample.SPREAD) != 0
        return Counts(
            accessed=self.arrays["accessed"],
            work=tuple(int(n) for n in self.arrays["work"][spread]),
            touched=tuple((int(one["start"]), int(one["bytes"])) for one in used),
            **{name: int(totals[name]) for name in TOTALS.names or ()},
        )


def behaviour(statements: Sequence[Statement]) -> Array:
    """Return what each instruction means for the accesses that a wave has outstanding."""
    return np.array([_behaviour(one) for one in statements], BEHAVIOUR)


def _behaviour(one: Statement) -> tuple[int, int]:
    if one.mnemonic == "s_waitcnt":
        return WAIT, waits.counts(one.operands)[0]
    found = _MEMORY.match(one.mnemonic)
    if found is None:
        return NONE, 0
    if found[2] == "load":
        return SCRATCH_LOAD if found[1] else LOAD, 0
    returns = found[2] == "atomic" and re.search(r"\b(sc0|glc)\b", one.operands) is not None
    return LOAD if returns else OTHER, 0
