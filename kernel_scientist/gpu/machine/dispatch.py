"""A launch of a kernel, and what the native library is given for it.

Runs in workers: standard library and numpy only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.counts import CountBuffers, Sample
from kernel_scientist.gpu.machine.listing import KernelDescriptor
from kernel_scientist.gpu.machine.memory import Memory
from kernel_scientist.gpu.machine.program import Array

Grid = tuple[int, int, int]
ORDER = np.dtype(
    [("arguments", "u8"), ("grid", "u4", 3), ("block", "u4", 3), ("entry", "u4"), ("registers", "u4"),
     ("lds_bytes", "u4"), ("scratch_bytes", "u4"), ("first_scalars", "u4"), ("scalars", "u4", 32), ("group_ids", "u4"),
     ("item_ids", "u4"), ("mode", "u4"), ("threads", "u4"), ("shuffle", "u4"), ("seed", "u8"), ("most", "u8"),
     ("first_group", "u4"), ("groups", "u4"), ("chosen", "u8"), ("matrix_order", "u4"), ("cooperative", "u4"),
     ("counting", "u8"), ("slice", "u4"), ("together", "u4"), ("resident", "u4"), ("sharing", "u4")], align=True,
)  # fmt: skip
MODE = MappingProxyType({
    "float_round_mode_32": (0, 0), "float_round_mode_16_64": (2, 0), "float_denorm_mode_32": (4, 0),
    "float_denorm_mode_16_64": (6, 3), "dx10_clamp": (8, 1), "ieee_mode": (9, 1), "fp16_overflow": (23, 0),
})  # fmt: skip
"""Fields of the register MODE that a kernel's descriptor sets, with their first bits and what the assembler assumes."""
SHARED_BASE, PRIVATE_BASE = 0x7FFF0001, 0x7FFF0002
"""Upper halves of addresses of LDS and scratch, as in `native/machine.h`."""
HOST_CALLS = 0x7FFF0004 << 32
"""Where a kernel looks for the buffer of its calls to the host (`printf`, `malloc`, `assert`): no memory lies there."""
PACKET_BYTES, WAVE = 64, 64
SLICE, SHORT_SLICE = 1 << 20, 1 << 14
"""Instructions of a wave after which others have a turn; the fewer where a wave may wait for another one."""


@dataclass(frozen=True)
class KernelLaunch:
    """What is executed."""

    code: Code
    name: str
    """The kernel's symbol."""
    grid: Grid
    """Workgroups."""
    block: Grid
    """Work-items of one."""
    arguments: bytes
    """The explicit ones, as they lie in the kernarg segment."""
    dynamic_lds: int = 0
    """Bytes of LDS beside those that the kernel declares."""
    cooperative: bool = False
    """Whether workgroups may wait for all others."""
    tensors: Mapping[int, str] = field(default_factory=lambda: MappingProxyType[int, str]({}))
    """Names that the kernel gives its tensors, by their addresses, where they are known."""

    @property
    def kernel(self) -> KernelDescriptor:
        """Return the kernel."""
        return self.code.kernels[self.name]

    @property
    def groups(self) -> int:
        """Return the number of its workgroups."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def lds_bytes(self) -> int:
        """Return the bytes of LDS of a workgroup."""
        return self.kernel.lds_bytes + self.dynamic_lds

    @property
    def waves(self) -> int:
        """Return the number of waves of a workgroup."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WAVE)


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
    resident: int = 0
    """Workgroups that run at a time: others start when one of them ends; 0: no bound."""
    samples: tuple[Sample, ...] | None = None
    """What each of these workgroups is counted for; None: nothing is counted."""
    most_sharing: int = 0
    """Wave instructions after which a workgroup ends that is counted for what it shares only; 0: no bound."""


@dataclass(frozen=True)
class Prepared:
    """A launch as the native library takes it. It lives as long as the launch."""

    order: Array
    table: Array
    """What the launch may use."""
    segment: Array
    packet: Array
    chosen: Array
    request: CountBuffers | None
    """What is counted."""


def prepared(launch: KernelLaunch, memory: Memory, options: Options) -> Prepared:
    """Return a launch, ready to be run."""
    code = launch.code
    if code.library.order_bytes != ORDER.itemsize:
        raise RuntimeError("the machine's native library is of another version; remove it from the cache")
    segment = _segment(launch)
    packet = _packet(launch, segment)
    order = _order(launch, segment, packet, options)
    chosen = np.array(options.groups if options.groups is not None else (), np.uint32)
    if options.groups is not None:
        order["groups"], order["chosen"] = len(chosen), chosen.ctypes.data
    data = code.program.data
    own = [(int(a.ctypes.data), a.nbytes, a is data) for a in (segment, packet, data)]
    table, request = memory.table(own), None
    if options.samples is not None:
        request = CountBuffers(code.listing, np.array(options.samples, np.uint8), table)
        order["counting"] = request.counting.ctypes.data
    return Prepared(order, table, segment, packet, chosen, request)


def _segment(launch: KernelLaunch) -> Array:
    """Return the kernarg segment: the explicit arguments, and the hidden ones that this launch defines."""
    kernel, grid, block = launch.kernel, launch.grid, launch.block
    segment = np.zeros(max(kernel.kernarg_bytes, 16) + 256, np.uint8)  # preloads may read behind the last one
    given = np.frombuffer(launch.arguments, np.uint8)
    segment[: len(given)] = given
    hidden = {f"hidden_block_count_{d}": grid[n] for n, d in enumerate("xyz")}
    hidden |= {f"hidden_group_size_{d}": block[n] for n, d in enumerate("xyz")}
    hidden["hidden_grid_dims"] = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    hidden |= {
        "hidden_dynamic_lds_size": launch.dynamic_lds,
        "hidden_private_base": PRIVATE_BASE,
        "hidden_shared_base": SHARED_BASE,
        "hidden_hostcall_buffer": HOST_CALLS,
    }
    for argument in kernel.arguments:
        if argument.kind in hidden:
            value = hidden[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = np.frombuffer(value, np.uint8)
    return segment


def _packet(launch: KernelLaunch, segment: Array) -> Array:
    """Return the dispatch packet (HSA, `hsa_kernel_dispatch_packet_t`)."""
    packet = np.zeros(PACKET_BYTES, np.uint8)
    packet[4:10].view(np.uint16)[:] = launch.block
    packet[12:24].view(np.uint32)[:] = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
    packet[24:32].view(np.uint32)[:] = [launch.kernel.scratch_bytes, launch.lds_bytes]
    packet[40:48].view(np.uint64)[0] = segment.ctypes.data
    return packet


def first_scalars(kernel: KernelDescriptor, segment: Array, packet: Array, words: Array) -> list[int]:
    """Return the scalar registers that are set at the start. `words`: what arguments that are preloaded hold."""
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
    scalars += [int(word) for word in words.view(np.uint32)[first : first + length]]
    scalars += [0] * (described.get("user_sgpr_count", len(scalars)) - len(scalars))
    return scalars


def _order(launch: KernelLaunch, segment: Array, packet: Array, options: Options) -> Array:
    code, kernel = launch.code, launch.kernel
    scalars = first_scalars(kernel, segment, packet, segment)
    order = np.zeros((), ORDER)
    order["arguments"], order["grid"], order["block"] = segment.ctypes.data, launch.grid, launch.block
    order["entry"], order["registers"] = code.listing.labels[kernel.name], code.program.registers
    order["lds_bytes"], order["scratch_bytes"] = -(-launch.lds_bytes // 16) * 16, kernel.scratch_bytes
    order["first_scalars"] = len(scalars)
    order["scalars"][: len(scalars)] = scalars
    described = kernel.descriptor
    ids = (described.get(f"system_sgpr_workgroup_id_{d}", int(d == "x")) for d in "xyz")
    order["group_ids"] = sum(1 << n for n, there in enumerate(ids) if there)
    order["item_ids"] = (1 << 10 * (described.get("system_vgpr_workitem_id", 0) + 1)) - 1
    order["mode"] = sum(described.get(field, usual) << bit for field, (bit, usual) in MODE.items())
    order["threads"], order["shuffle"], order["seed"] = max(1, options.threads), options.backwards, options.seed
    order["most"], order["matrix_order"] = options.most_instructions, options.descending_sums
    order["cooperative"], order["together"] = launch.cooperative, code.communicates
    order["slice"] = SHORT_SLICE if code.communicates else SLICE
    order["sharing"] = options.most_sharing
    order["groups"], order["resident"] = launch.groups, 0 if options.backwards else options.resident
    return order
