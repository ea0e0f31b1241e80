"""Checking runs: each wave is executed twice, and the two runs differ only in what is undefined.

They differ in memory that nobody wrote, in values that depend on the order of waves, and in where the tensors lie.
Where they do not agree, or go where nothing is, that is a finding. Runs in workers: standard library and numpy only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from kernel_scientist.gpu.machine import launch as launches
from kernel_scientist.gpu.machine import twin_effects
from kernel_scientist.gpu.machine.launch import Code, Fault, Finding, Memory, Options, Prepared, Result
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.program import Array
from kernel_scientist.gpu.machine.shadow import POINTER, Cause, Record, Shadow

CHECK_ORDER = np.dtype([("scalars", "u4", 32), ("launch", "u4"), ("partial", "u4"), ("seed", "u8")], align=True)
REGION, REGIONS = 1 << 35, 1 << 11
"""Each allocation lies in a region of its own in the second run, as in `native/checker.h`."""
Grid = tuple[int, int, int]
UNCHANGED = Options()


@dataclass(frozen=True)
class Tensor:
    """What an allocation is to the user."""

    name: str
    element_bytes: int
    bytes: int


@dataclass(frozen=True)
class Checked:
    """A launch that was checked."""

    code: Code
    kernel: str
    grid: Grid
    lds_bytes: int
    tensors: dict[int, Tensor]
    """By the addresses of the allocations."""


@dataclass
class Checks:
    """What is known of one call of a submission: its memory and its launches."""

    library: Library
    shadow: Shadow = field(init=False)
    launched: list[Checked] = field(default_factory=list[Checked])
    tensors: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    """What the allocations are, by their addresses."""
    _effects: dict[int, tuple[Array, Array]] = field(default_factory=dict[int, tuple[Array, Array]])
    _regions: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        """Start without any memory."""
        twin_effects.require(self.library, CHECK_ORDER)
        self.shadow = Shadow(self.library)

    def run(
        self,
        code: Code,
        name: str,
        grid: Grid,
        block: Grid,
        arguments: bytes,
        memory: Memory,
        dynamic_lds: int = 0,
        options: Options = UNCHANGED,
        names: Mapping[int, str] = MappingProxyType({}),
    ) -> Result:
        """Run a kernel as `launch.run` does, and note what is wrong. `names`: of its tensors, by their addresses.

        If only some workgroups are run, memory that nobody wrote is not a finding: others may write it.
        """
        ready = launches.prepared(code, name, grid, block, arguments, memory, dynamic_lds, options)
        ready.order["lds_bytes"] = code.kernels[name].lds_bytes + dynamic_lds
        table = _merged(ready.table)
        moved = self._moved(table, ready, code)
        segment = _moved_pointers(ready.segment, len(arguments), table, moved)
        place = int(ready.segment.ctypes.data)
        self.shadow.define(place, segment.nbytes)
        self.shadow.put(place, segment ^ ready.segment, POINTER)
        check = np.zeros((), CHECK_ORDER)
        scalars = launches.first_scalars(code.kernels[name], ready.segment, ready.packet, segment)
        check["scalars"][: len(scalars)], check["seed"] = scalars, options.seed or 1
        check["launch"], check["partial"] = len(self.launched), options.groups is not None
        if options.groups is not None:
            self.shadow.forget()
        tensors = {start: replace(one, name=names.get(start, one.name)) for start, one in self.tensors.items()}
        self.launched.append(Checked(code, name, grid, int(ready.order["lds_bytes"]), tensors))
        effects, registers = self._packed(code)
        count = len(code.program.packed)
        executed, lanes, total = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(1, np.uint64)
        gave_up: int = self.library.native.machine_check(
            code.handle, ready.order.ctypes.data, check.ctypes.data, table.ctypes.data, moved.ctypes.data, len(table),
            effects.ctypes.data, registers.ctypes.data, self.shadow.handle, executed.ctypes.data, lanes.ctypes.data,
            total.ctypes.data,
        )  # fmt: skip
        self.shadow.define(place, segment.nbytes)
        refused = tuple(self._refusal(code, record) for record in self.records() if record.cause is Cause.REFUSED)
        return Result(executed, lanes, refused, int(total[0]), bool(gave_up))

    def _refusal(self, code: Code, record: Record) -> Finding:
        statement = code.listing.statements[record.instruction]
        return Finding(Fault.REFUSED, statement, record.lane, record.wave, (record.group, 0, 0), 0, record.lanes)

    def records(self) -> list[Record]:
        """Return what is wrong so far."""
        return self.shadow.records()

    def _packed(self, code: Code) -> tuple[Array, Array]:
        if id(code) not in self._effects:
            self._effects[id(code)] = twin_effects.packed(code.listing)
        return self._effects[id(code)]

    def _moved(self, table: Array, ready: Prepared, code: Code) -> Array:
        """Return where each allocation lies in the second run. Alignments stay; arguments and constants stay there."""
        fixed = {int(a.ctypes.data) for a in (ready.segment, ready.packet, code.program.data)}
        moved = table["start"].copy()
        for n, start in enumerate(int(s) for s in table["start"]):
            if start in fixed:
                continue
            region = self._regions.setdefault(start, len(self._regions) % (REGIONS - 1) + 1)
            moved[n] = region * REGION + REGION // 2 + start % (1 << 16)
        return moved


def _merged(table: Array) -> Array:
    """Return a table of allocations in which none overlaps another: views of one tensor become one."""
    kept = list[list[int]]()
    for start, size, writable, _ in table.tolist():
        if kept and start < kept[-1][0] + kept[-1][1]:
            last = kept[-1]
            last[1], last[2] = max(last[1], start + size - last[0]), last[2] | writable
        else:
            kept.append([start, size, writable, 0])
    return np.array([tuple(one) for one in kept], table.dtype)


def _moved_pointers(segment: Array, size: int, table: Array, moved: Array) -> Array:
    """Return arguments in which every address of an allocation is its address in the second run."""
    found = segment.copy()
    words = found[: size // 8 * 8].view(np.uint64)
    place = np.searchsorted(table["start"], words, side="right") - 1
    offset = words - table["start"][place]
    inside = (place >= 0) & (offset <= table["bytes"][place])
    words[inside] = (moved[place] + offset)[inside]
    return found
