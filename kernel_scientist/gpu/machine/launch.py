"""Loads code into the machine and runs launches of its kernels.

Runs in workers: standard library and numpy only.
"""

import hashlib
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import listing as listings
from kernel_scientist.gpu.machine import program as programs
from kernel_scientist.gpu.machine.counts import Counts, Request, Sample
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.listing import Kernel, Listing, Statement
from kernel_scientist.gpu.machine.program import Array, Program

ORDER = np.dtype(
    [("arguments", "u8"), ("grid", "u4", 3), ("block", "u4", 3), ("entry", "u4"), ("registers", "u4"),
     ("lds_bytes", "u4"), ("scratch_bytes", "u4"), ("first_scalars", "u4"), ("scalars", "u4", 32), ("group_ids", "u4"),
     ("flush", "u4"), ("threads", "u4"), ("shuffle", "u4"), ("seed", "u8"), ("most", "u8"), ("first_group", "u4"),
     ("groups", "u4"), ("chosen", "u8"), ("matrix_order", "u4"), ("cooperative", "u4"), ("counting", "u8")], align=True,
)  # fmt: skip
ALLOCATION = np.dtype([("start", "u8"), ("bytes", "u8"), ("writable", "u4"), ("reserved", "u4")], align=True)
FINDING = np.dtype(
    [("fault", "u4"), ("instruction", "u4"), ("lane", "u4"), ("wave", "u4"), ("group", "u4", 3), ("lanes", "u4"),
     ("address", "u8"), ("times", "u8")], align=True,
)  # fmt: skip
MOST_FINDINGS = 1000
SHARED_BASE, PRIVATE_BASE = 0x7FFF0001, 0x7FFF0002
"""Upper halves of addresses of LDS and scratch, as in `native/machine.h`."""
HOST_CALLS = 0x7FFF0004 << 32
"""Where a kernel looks for the buffer of its calls to the host (`printf`, `malloc`, `assert`): no memory lies there."""
PACKET_BYTES = 64
WAVE = 64


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


@dataclass(frozen=True)
class Finding:
    """A fault at one instruction."""

    fault: Fault
    statement: Statement
    lane: int
    wave: int
    group: tuple[int, int, int]
    address: int
    times: int


@dataclass(frozen=True)
class Result:
    """What a launch did."""

    executed: Array
    """How often each instruction was executed, in waves."""
    lanes: Array
    """How many lanes were active in total, by instruction."""
    findings: tuple[Finding, ...]
    instructions: int
    """Wave instructions in total."""
    gave_up: bool
    """Whether it ran more instructions than it may: an endless loop, or too large."""
    counts: Counts | None = None
    """What was counted, if it was asked for."""


@dataclass(frozen=True)
class Options:
    """How a launch is run; two runs that differ in these must agree in their results."""

    threads: int = 1
    seed: int = 0
    """Of what nobody wrote: registers, LDS and scratch."""
    backwards: bool = False
    """Whether waves and workgroups run in descending order."""
    descending_sums: bool = False
    """Whether matrix instructions add their products in descending order."""
    most_instructions: int = 0
    """Wave instructions after which it is given up; 0: no bound."""
    groups: tuple[int, ...] | None = None
    """Linear numbers of the workgroups to run; None: all."""
    samples: tuple[Sample, ...] | None = None
    """What each of these workgroups is counted for; None: nothing is counted."""
    cooperative: bool = False
    """Whether workgroups may wait for all others."""


@dataclass
class Memory:
    """The memory that launches may use."""

    _places: dict[int, tuple[int, bool]] = field(default_factory=dict[int, tuple[int, bool]])

    def add(self, address: int, size: int, writable: bool = True) -> None:
        """Allow `size` bytes from an address on."""
        if size > 0:
            self._places[address] = (size, writable)

    def remove(self, address: int) -> None:
        """Forbid what was allowed from this address on."""
        self._places.pop(address, None)

    def writable(self) -> list[tuple[int, int]]:
        """Return address and size of what may be written."""
        return [(start, size) for start, (size, writable) in self._places.items() if writable]

    def table(self, more: Iterable[tuple[int, int, bool]]) -> Array:
        """Return everything that is allowed, in the order of the addresses. Places that overlap, such as views of one
        tensor, become one: each address belongs to one entry. It is writable if one of them is.
        """
        found = [*((start, size, writable) for start, (size, writable) in self._places.items()), *more]
        disjoint = list[tuple[int, int, bool, int]]()
        for start, size, writable in sorted(found):
            if disjoint and start < disjoint[-1][0] + disjoint[-1][1]:
                first, before, allowed, _ = disjoint.pop()
                start, size, writable = first, max(before, start + size - first), writable or allowed
            disjoint.append((start, size, writable, 0))
        return np.array(disjoint, ALLOCATION)


class Code:
    """Assembly, loaded into the machine."""

    def __init__(self, library: Library, listing: Listing, program: Program, digest: str) -> None:
        """`digest`: sha256 of the text."""
        if library.packed_bytes != programs.PACKED.itemsize or library.order_bytes != ORDER.itemsize:
            raise RuntimeError("the machine's native library is of another version; remove it from the cache")
        self.library, self.listing, self.program, self.digest = library, listing, program, digest
        self.handle: int = library.load(program.packed.ctypes.data, len(program.packed))
        weakref.finalize(self, library.free, self.handle)

    @staticmethod
    def of(library: Library, text: str) -> "Code":
        """Load a file of assembly. Raises ListingError or ProgramError."""
        listing = listings.read(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Code(library, listing, programs.packed(listing, library.rows), digest)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """Return the kernels by their symbols."""
        return self.listing.kernels

    @cached_property
    def communicates(self) -> bool:
        """Return whether workgroups may need each other: by atomic operations, or accesses that others see at once.

        Those are accesses of volatile variables, and atomic loads and stores: their scope is wider than a CU (`sc1`).
        """
        return any("_atomic_" in s.mnemonic or "sc1" in s.operands.split() for s in self.listing.statements)

    @property
    def missing(self) -> tuple[Statement, ...]:
        """Return the instructions that the machine does not know, by their first appearance."""
        found = {
            programs.base_name(s.mnemonic): s
            for n in reversed(self.program.missing)
            for s in (self.listing.statements[n],)
        }
        return tuple(found.values())

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return address and size of a variable of the device."""
        place = self.program.symbols.get(name)
        return None if place is None else (int(self.program.data.ctypes.data) + place[0], place[1])


def run(
    code: Code,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: bytes,
    memory: Memory,
    dynamic_lds: int = 0,
    options: Options = Options(),
) -> Result:
    """Run a kernel. `grid` counts workgroups, `arguments` are the explicit ones as they lie in the kernarg segment."""
    kernel = code.kernels[name]
    segment = _segment(kernel, grid, block, arguments, dynamic_lds)
    packet = _packet(kernel, grid, block, segment, dynamic_lds)
    order = _order(code, kernel, grid, block, segment, packet, kernel.lds_bytes + dynamic_lds, options)
    chosen = np.array(options.groups if options.groups is not None else (), np.uint32)
    if options.groups is not None:
        order["groups"], order["chosen"] = len(chosen), chosen.ctypes.data
    data = code.program.data
    own = [(int(a.ctypes.data), a.nbytes, a is data) for a in (segment, packet, data)]
    table = memory.table(own)
    request = None
    if options.samples is not None:
        request = Request(code.listing, np.array(options.samples, np.uint8), table)
        order["counting"] = request.counting.ctypes.data
    count = len(code.program.packed)
    executed, lanes, findings = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(MOST_FINDINGS, FINDING)
    total = np.zeros(1, np.uint64)
    pointers = (executed, lanes, findings)
    found: int = code.library.run(
        code.handle, order.ctypes.data, table.ctypes.data, len(table), *(p.ctypes.data for p in pointers),
        MOST_FINDINGS, total.ctypes.data,
    )  # fmt: skip
    gave_up, most = found < 0, found if found >= 0 else -1 - found
    counts = request.counts() if request else None
    return Result(executed, lanes, tuple(_finding(code, f) for f in findings[:most]), int(total[0]), gave_up, counts)


def _finding(code: Code, found: Any) -> Finding:
    x, y, z = (int(n) for n in found["group"])
    statement = code.listing.statements[int(found["instruction"])]
    lane, wave = int(found["lane"]), int(found["wave"])
    return Finding(
        Fault(int(found["fault"])), statement, lane, wave, (x, y, z), int(found["address"]), int(found["times"])
    )


def _segment(kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], arguments: bytes, dynamic: int) -> Array:
    """Return the kernarg segment: the explicit arguments, and the hidden ones that this launch defines."""
    segment = np.zeros(max(kernel.kernarg_bytes, 16) + 256, np.uint8)  # preloads may read behind the last one
    given = np.frombuffer(arguments, np.uint8)
    segment[: len(given)] = given
    hidden = {f"hidden_block_count_{d}": grid[n] for n, d in enumerate("xyz")}
    hidden |= {f"hidden_group_size_{d}": block[n] for n, d in enumerate("xyz")}
    hidden["hidden_grid_dims"] = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    hidden |= {
        "hidden_dynamic_lds_size": dynamic,
        "hidden_private_base": PRIVATE_BASE,
        "hidden_shared_base": SHARED_BASE,
        "hidden_hostcall_buffer": HOST_CALLS,
    }
    for argument in kernel.arguments:
        if argument.kind in hidden:
            value = hidden[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = np.frombuffer(value, np.uint8)
    return segment


def _packet(kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], segment: Array, dynamic: int) -> Array:
    """Return the dispatch packet (HSA, `hsa_kernel_dispatch_packet_t`)."""
    packet = np.zeros(PACKET_BYTES, np.uint8)
    packet[4:10].view(np.uint16)[:] = block
    packet[12:24].view(np.uint32)[:] = [g * b for g, b in zip(grid, block, strict=True)]
    packet[24:32].view(np.uint32)[:] = [kernel.scratch_bytes, kernel.lds_bytes + dynamic]
    packet[40:48].view(np.uint64)[0] = segment.ctypes.data
    return packet


def _order(
    code: Code,
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    segment: Array,
    packet: Array,
    lds_bytes: int,
    options: Options,
) -> Any:
    described = kernel.descriptor
    scalars = list[int]()

    def pair(directive: str, address: int) -> None:
        if described.get(f"user_sgpr_{directive}"):
            scalars.extend((address & 0xFFFFFFFF, address >> 32))

    if described.get("user_sgpr_private_segment_buffer"):
        scalars.extend((0, 0, 0, 0))
    pair("dispatch_ptr", int(packet.ctypes.data))
    pair("queue_ptr", 0)
    pair("kernarg_segment_ptr", int(segment.ctypes.data))
    pair("dispatch_id", 0)
    pair("flat_scratch_init", 0)
    if described.get("user_sgpr_private_segment_size"):
        scalars.append(kernel.scratch_bytes)
    first, length = (described.get(f"user_sgpr_kernarg_preload_{what}", 0) for what in ("offset", "length"))
    scalars += [int(word) for word in segment.view(np.uint32)[first : first + length]]
    scalars += [0] * (described.get("user_sgpr_count", len(scalars)) - len(scalars))
    order = np.zeros((), ORDER)
    order["arguments"], order["grid"], order["block"] = segment.ctypes.data, grid, block
    order["entry"], order["registers"] = code.listing.labels[kernel.name], code.program.registers
    order["lds_bytes"], order["scratch_bytes"] = -(-lds_bytes // 16) * 16, kernel.scratch_bytes
    order["first_scalars"] = len(scalars)
    order["scalars"][: len(scalars)] = scalars
    ids = (described.get(f"system_sgpr_workgroup_id_{d}", int(d == "x")) for d in "xyz")
    order["group_ids"] = sum(1 << n for n, there in enumerate(ids) if there)
    order["flush"] = int(described.get("float_denorm_mode_32", 3) != 3)
    order["threads"], order["shuffle"], order["seed"] = max(1, options.threads), options.backwards, options.seed
    order["most"], order["matrix_order"] = options.most_instructions, options.descending_sums
    order["cooperative"] = options.cooperative
    order["groups"] = grid[0] * grid[1] * grid[2]
    return order
