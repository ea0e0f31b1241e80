"""Checking runs: each wave is executed twice, and the two runs differ only in what is undefined.

They differ in memory that nobody wrote, in values that depend on the order of waves, and in where the tensors lie.
Where they do not agree, or go where nothing is, that is a finding. Runs in workers: standard library and numpy only.
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from kernel_scientist.gpu.machine import twin_effects
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import Grid, KernelLaunch, Options, Prepared, first_scalars, prepared
from kernel_scientist.gpu.machine.launch import USUAL, Fault, Finding, LaunchResult
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.program import Array
from kernel_scientist.gpu.machine.shadow import POINTER, Cause, FaultRecord, Shadow

CHECK_ORDER = np.dtype([("scalars", "u4", 32), ("launch", "u4"), ("reserved", "u4"), ("seed", "u8")], align=True)
REGION, REGIONS = 1 << 35, 1 << 11
"""Each allocation lies in a region of its own in the second run, as in `native/checker.h`."""


@dataclass(frozen=True)
class Tensor:
    """What an allocation is to the user."""

    name: str
    element_bytes: int
    bytes: int


MOST = 2_000_000
"""Wave instructions of a call that are checked."""


class RunOutcome(IntEnum):
    """How a checking run ended; as in `native/checker.h`."""

    ENDED = 0
    STUCK = 1
    """All waves that are left wait for each other."""
    TOO_MANY = 2
    """It ran more instructions than it may. Memory is as before."""


@dataclass(frozen=True)
class CheckingRun:
    """A checking run of a launch, or the beginning of one."""

    outcome: RunOutcome
    groups: int
    """Workgroups that ended."""
    result: LaunchResult


@dataclass(frozen=True)
class Checked:
    """A launch that was checked."""

    launch: KernelLaunch
    tensors: dict[int, Tensor]
    """By the addresses of the allocations."""
    note: str = ""
    """What there is to say of its deadlock."""


@dataclass
class Checks:
    """What is known of one call of a submission: its memory and its launches."""

    library: Library
    shadow: Shadow = field(init=False)
    launched: list[Checked] = field(default_factory=list[Checked])
    left: int = MOST
    """Wave instructions that the launches of the call may still run."""
    tensors: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    """What the allocations are, by their addresses."""
    _effects: dict[int, tuple[Array, Array]] = field(default_factory=dict[int, tuple[Array, Array]])
    _regions: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        """Start without any memory."""
        twin_effects.require(self.library, CHECK_ORDER)
        self.shadow = Shadow(self.library)

    def run(self, launch: KernelLaunch, memory: Memory, options: Options = USUAL) -> CheckingRun:
        """Run all workgroups of a launch as `launch.run` does, and note what is wrong."""
        assert options.groups is None, "a checking run is one of all workgroups"
        code, ready = launch.code, prepared(launch, memory, options)
        ready.order["lds_bytes"] = launch.lds_bytes
        moved = self._moved(ready, code)
        segment = _moved_pointers(ready.segment, len(launch.arguments), ready.table, moved)
        place = int(ready.segment.ctypes.data)
        self.shadow.define(place, segment.nbytes)
        self.shadow.put(place, segment ^ ready.segment, POINTER)
        check = np.zeros((), CHECK_ORDER)
        scalars = first_scalars(launch.kernel, ready.segment, ready.packet, segment)
        check["scalars"][: len(scalars)], check["seed"] = scalars, options.seed or 1
        check["launch"] = len(self.launched)
        order = _edges_first(launch.grid)
        if not code.communicates:
            ready.order["chosen"] = order.ctypes.data
        tensors = {start: replace(one, name=launch.tensors.get(start, one.name)) for start, one in self.tensors.items()}
        self.launched.append(Checked(launch, tensors))
        effects, registers = self._packed(code)
        count = len(code.program.packed)
        executed, lanes, done = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(3, np.uint64)
        outcome: int = self.library.native.machine_check(
            code.handle, ready.order.ctypes.data, check.ctypes.data, ready.table.ctypes.data, moved.ctypes.data,
            len(ready.table), effects.ctypes.data, registers.ctypes.data, self.shadow.handle, executed.ctypes.data,
            lanes.ctypes.data, done.ctypes.data,
        )  # fmt: skip
        self.shadow.define(place, segment.nbytes)
        refused = tuple(self._refusal(code, record) for record in self.records() if record.cause is Cause.REFUSED)
        stuck = RunOutcome(outcome) is not RunOutcome.ENDED
        return CheckingRun(
            RunOutcome(outcome), int(done[1]), LaunchResult(executed, lanes, refused, int(done[0]), stuck, int(done[2]))
        )

    def note(self, words: str) -> None:
        """Say something of the deadlock of the last launch."""
        self.launched[-1] = replace(self.launched[-1], note=words)

    def follows(self, code: Code) -> bool:
        """Return whether what each of its instructions reads and writes is known."""
        return not code.calls_host and twin_effects.followed(code.listing)

    def settle(self, memory: Memory, pattern: int) -> None:
        """Note that all is defined that a launch may write, because one runs that is not checked.

        What nobody wrote is filled with a pattern: there the two runs cannot differ.
        """
        for start, size in memory.writable():
            self.shadow.settle(start, size, pattern)

    def _refusal(self, code: Code, record: FaultRecord) -> Finding:
        return Finding(
            fault=Fault.REFUSED,
            statement=code.listing.statements[record.instruction],
            places=code.lines.chain(record.instruction),
            small=code.lines.small(record.instruction),
            lane=record.lane,
            wave=record.wave,
            group=(record.group, 0, 0),
            address=0,
            times=record.lanes,
        )

    def records(self) -> list[FaultRecord]:
        """Return what is wrong so far."""
        return self.shadow.records()

    def _packed(self, code: Code) -> tuple[Array, Array]:
        if id(code) not in self._effects:
            self._effects[id(code)] = twin_effects.packed(code.listing)
        return self._effects[id(code)]

    def _moved(self, ready: Prepared, code: Code) -> Array:
        """Return where each allocation lies in the second run. Alignments stay; arguments and constants stay there."""
        table = ready.table
        fixed = {int(a.ctypes.data) for a in (ready.segment, ready.packet, code.program.data)}
        moved = table["start"].copy()
        for n, start in enumerate(int(s) for s in table["start"]):
            if start in fixed:
                continue
            region = self._regions.setdefault(start, len(self._regions) % (REGIONS - 1) + 1)
            moved[n] = region * REGION + REGION // 2 + start % (1 << 16)
        return moved


def _edges_first(grid: Grid) -> Array:
    """Return the numbers of all workgroups, those at the grid's corners before the others: there masks matter."""
    columns, rows, layers = grid
    corners = {x + columns * (y + rows * z) for x in (0, columns - 1) for y in (0, rows - 1) for z in (0, layers - 1)}
    order = np.arange(columns * rows * layers, dtype=np.uint32)
    return np.concatenate([np.array(sorted(corners), np.uint32), np.delete(order, list(corners))])


def _moved_pointers(segment: Array, size: int, table: Array, moved: Array) -> Array:
    """Return arguments in which every address of an allocation is its address in the second run."""
    found = segment.copy()
    words = found[: size // 8 * 8].view(np.uint64)
    place = np.searchsorted(table["start"], words, side="right") - 1
    offset = words - table["start"][place]
    inside = (place >= 0) & (offset <= table["bytes"][place])
    words[inside] = (moved[place] + offset)[inside]
    return found
