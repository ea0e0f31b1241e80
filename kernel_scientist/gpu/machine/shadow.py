"""What a checking run knows of memory: which bytes are undefined, and why.

Runs in workers: standard library and numpy only.
"""

import weakref
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.program import Array

RECORD = np.dtype(
    [("cause", "u4"), ("launch", "u4"), ("instruction", "u4"), ("lane", "u4"), ("wave", "u4"), ("group", "u4"),
     ("other_instruction", "u4"), ("other_lane", "u4"), ("other_wave", "u4"), ("other_group", "u4"), ("reach", "u4"),
     ("reached_at", "u4"), ("groups", "u4"), ("last_group", "u4"), ("lanes", "u8"), ("address", "u8"), ("start", "u8")],
    align=True,
)  # fmt: skip
NOBODY = 0xFFFFFFFF
POINTER = 1
"""Number of the record of addresses: they differ between the two runs, and are defined."""


class Cause(IntEnum):
    """What is wrong, or why a value is undefined; as in `native/shadow.h`."""

    POINTER = 1
    UNSET_REGISTER = 2
    UNSET_LDS = 3
    UNSET_SCRATCH = 4
    UNSET_MEMORY = 5
    RACE_READ = 6
    """What was read depends on the order of waves."""
    RACE_WRITE = 7
    """What stays in memory depends on the order of waves or lanes."""
    READ_OUTSIDE = 8
    WRITE_OUTSIDE = 9
    WRITE_READ_ONLY = 10
    LDS_OUTSIDE = 11
    SCRATCH_OUTSIDE = 12
    JUMP = 13
    REFUSED = 14
    BARRIERS = 15
    """Waves of a workgroup wait at different barriers."""
    DEADLOCK = 16
    TRAP = 17
    """The code ends the wave itself."""


FALSE_ASSUMPTION = 65
"""Number of the trap at which a wave ends where an assumption of its source is false; compilers use 2 and 3."""


class Reach(IntEnum):
    """What depends on an undefined value; as in `native/shadow.h`."""

    NOT_YET = 0
    ADDRESS = 1
    BRANCH = 2
    OUTPUT = 3
    AT_ONCE = 4


@dataclass(frozen=True)
class FaultRecord:
    """A fault, or the origin of an undefined value."""

    cause: Cause
    launch: int
    instruction: int
    lane: int
    wave: int
    group: int
    other: tuple[int, int, int, int] | None
    """Instruction, lane, wave and workgroup that use the same place."""
    reach: Reach
    reached_at: int
    """The instruction that depends on the value, or NOBODY."""
    lanes: int
    groups: int
    address: int
    start: int
    """Of the allocation that is meant; 0: none."""


class Shadow:
    """Bytes in which the two runs of a checking run differ, from launch to launch of one call."""

    def __init__(self, library: Library) -> None:
        self._native = library.native
        self.handle: int = self._native.machine_shadow()
        weakref.finalize(self, self._native.machine_shadow_free, self.handle)

    def poison(self, address: int, size: int, seed: int) -> None:
        """Note that nobody has written these bytes."""
        self._native.machine_shadow_poison(self.handle, address, size, seed)

    def define(self, address: int, size: int) -> None:
        """Note that these bytes are defined."""
        self._native.machine_shadow_define(self.handle, address, size)

    def settle(self, address: int, size: int, pattern: int) -> None:
        """Note that these bytes are defined, and fill those that nobody wrote with a pattern."""
        self._native.machine_shadow_settle(self.handle, address, size, pattern)

    def put(self, address: int, delta: Array, origin: int) -> None:
        """Note how bytes differ, and the record that says why."""
        delta = np.ascontiguousarray(delta, np.uint8)
        self._native.machine_shadow_set(self.handle, address, delta.nbytes, delta.ctypes.data, origin)

    def delta(self, address: int, size: int) -> Array | None:
        """Return how bytes differ; None if they do not."""
        found = np.empty(size, np.uint8)
        any_: int = self._native.machine_shadow_get(self.handle, address, size, found.ctypes.data, None)
        return found if any_ else None

    def origins(self, address: int, size: int) -> Array:
        """Return the numbers of the records that say why bytes are undefined; 0: they are not, or nobody wrote them."""
        delta, found = np.empty(size, np.uint8), np.empty(size, np.uint32)
        self._native.machine_shadow_get(self.handle, address, size, delta.ctypes.data, found.ctypes.data)
        return found

    def reach(self, origin: int, how: Reach) -> None:
        """Note that something depends on an undefined value."""
        self._native.machine_shadow_reach(self.handle, origin, how)

    def records(self) -> list[FaultRecord]:
        """Return the records that something depends on."""
        count: int = self._native.machine_shadow_records(self.handle, None, 0)
        found = np.zeros(count, RECORD)
        self._native.machine_shadow_records(self.handle, found.ctypes.data, count)
        return [_record(one) for one in found[2:] if one["reach"]]


def _record(one: Any) -> FaultRecord:
    n = {name: int(one[name]) for name in RECORD.fields or ()}
    who = (n["other_instruction"], n["other_lane"], n["other_wave"], n["other_group"])
    return FaultRecord(
        Cause(n["cause"]), n["launch"], n["instruction"], n["lane"], n["wave"], n["group"],
        None if who[0] == NOBODY else who, Reach(n["reach"]), n["reached_at"], n["lanes"], n["groups"], n["address"],
        n["start"],
    )  # fmt: skip
