"""Runs launches of kernels in the machine.

Runs in workers: standard library and numpy only.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.counts import Counts
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options, prepared
from kernel_scientist.gpu.machine.listing import Statement
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.program import Array
from kernel_scientist.gpu.toolchains.quoted_sources import Place

FINDING = np.dtype(
    [("fault", "u4"), ("instruction", "u4"), ("lane", "u4"), ("wave", "u4"), ("group", "u4", 3), ("lanes", "u4"),
     ("address", "u8"), ("times", "u8")], align=True,
)  # fmt: skip
MOST_FINDINGS = 1000


class NotSimulatedError(Exception):
    """The machine does not execute this: its own limit, no fault of the code."""


class Fault(IntEnum):
    """What a launch did wrong; as in `native/machine.h`."""

    READ_OUTSIDE = 1
    WRITE_OUTSIDE = 2
    WRITE_READ_ONLY = 3
    LDS_OUTSIDE = 4
    SCRATCH_OUTSIDE = 5
    JUMP = 6
    REFUSED = 7
    TRAP = 8
    DEADLOCK = 9
    """It waits for ever: all workgroups that run are as they were before, and none can start."""


@dataclass(frozen=True)
class Finding:
    """A fault at one instruction."""

    fault: Fault
    statement: Statement
    places: tuple[Place, ...]
    """Its lines in the source (`LineTable.chain`)."""
    small: int
    """How many of them lie in small functions (`LineTable.small`)."""
    lane: int
    wave: int
    group: tuple[int, int, int]
    address: int
    times: int
    note: str = ""
    """What else there is to say."""


@dataclass(frozen=True)
class LaunchResult:
    """What a launch did."""

    executed: Array
    """How often each instruction was executed, in waves."""
    lanes: Array
    """How many lanes were active in total, by instruction."""
    findings: tuple[Finding, ...]
    instructions: int
    """Wave instructions in total."""
    gave_up: bool
    """Whether it ran more instructions than it may, or waits for ever."""
    started: int = 0
    """Workgroups that started."""
    counts: Counts | None = None
    """What was counted, if it was asked for."""


USUAL = Options()


def run(launch: KernelLaunch, memory: Memory, options: Options = USUAL) -> LaunchResult:
    """Run a kernel."""
    code, ready = launch.code, prepared(launch, memory, options)
    count = len(code.program.packed)
    executed, lanes, findings = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(MOST_FINDINGS, FINDING)
    done = np.zeros(2, np.uint64)
    pointers = (executed, lanes, findings)
    found: int = code.library.run(
        code.handle, ready.order.ctypes.data, ready.table.ctypes.data, len(ready.table),
        *(p.ctypes.data for p in pointers), MOST_FINDINGS, done.ctypes.data,
    )  # fmt: skip
    gave_up, most = found < 0, found if found >= 0 else -1 - found
    counts = ready.request.counts() if ready.request else None
    told = tuple(_finding(code, f) for f in findings[:most])
    return LaunchResult(executed, lanes, told, int(done[0]), gave_up, int(done[1]), counts)


def _finding(code: Code, found: Any) -> Finding:
    x, y, z = (int(n) for n in found["group"])
    instruction, lane, wave = (int(found[name]) for name in ("instruction", "lane", "wave"))
    return Finding(
        fault=Fault(int(found["fault"])),
        statement=code.listing.statements[instruction],
        places=code.lines.chain(instruction),
        small=code.lines.small(instruction),
        lane=lane,
        wave=wave,
        group=(x, y, z),
        address=int(found["address"]),
        times=int(found["times"]),
    )
