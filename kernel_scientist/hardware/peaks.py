"""Rates of machines, the floor that no kernel can be faster than, and the roofline that a good one comes near."""

import functools
from dataclasses import dataclass, field
from typing import Literal

from kernel_scientist.hardware import cpu
from kernel_scientist.records.kernel import Work

CPU_CLOCK_GHZ = 6.5
"""No core that is sold boosts higher (the fastest, 6.2 GHz, is a desktop's), so a floor is never too high."""
CPU_MEMORY_GBPS = 600.0
"""Twelve channels of DDR5-6000: a virtual machine cannot see its channels. A guide, not a bound."""
BYTES_PER_CLOCK = 256
"""Most bytes that a core moves between its registers and its caches: three loads and a store of 64 B, or less."""
FMA_UNITS, ARM_FMA_UNITS = 2, 6
"""Vector units of a core: two of the widest vector (x86), six of 128 bits (Cortex-X925; servers have two or four)."""
AMX_INT8, AMX_HALF = 2048, 1024
"""Operations per clock of a core's tile unit: TDPBSSD and TDPBF16PS do 16 x 16 x 64 and 16 x 16 x 32 multiplications
with additions in 16 clocks (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX)."""
NATIVE = {
    "bf16": {"avx512_bf16", "amx_bf16"},
    "fp16": {"avx512_fp16", "amx_fp16"},
    "int8": {"avx512_vnni", "avx_vnni", "amx_int8"},
}
"""Features of which one gives a type arithmetic of its own on x86, beside fp64 and fp32."""
Limit = Literal["memory", "arithmetic"]


@dataclass(frozen=True)
class Machine:
    """Nominal rates: bandwidth of main memory in GB/s, arithmetic in GFLOP/s by type. Beside them those that no kernel
    exceeds."""

    name: str
    memory_gbps: float
    peak_gflops: dict[str, float]
    bound_gflops: float = field(default=0.0, kw_only=True)
    """Arithmetic of the fastest unit at the highest clock; 0: the largest nominal peak."""
    bound_gbps: float = field(default=0.0, kw_only=True)
    """Rate at which a kernel gets its bytes at best; 0: that of main memory."""
    kept_bytes: int = field(default=0, kw_only=True)
    """Bytes of a call that caches may keep, so that they are not moved at that rate."""
    certain: bool = field(default=True, kw_only=True)
    """Whether the bound is certain. If not, a time below it is only noted."""

    @property
    def most_gflops(self) -> float:
        """Arithmetic that no kernel exceeds, of any type: a narrower one may suffice for a problem's tolerance."""
        return self.bound_gflops or max(self.peak_gflops.values())


@functools.cache
def this_cpu() -> Machine:
    """Return this CPU's rates, from all its features, at a clock that no core exceeds.

    What a call reads may lie in any cache, so only the way to the registers bounds its bytes.
    """
    per_clock = operations_per_clock(
        cpu.features(), cpu.vector_bytes(), cpu.scalable_bytes("sve"), cpu.scalable_bytes("sme")
    )
    per_ns = cpu.cores() * CPU_CLOCK_GHZ
    peaks = {name: rate * per_ns for name, rate in per_clock.items()}
    within = BYTES_PER_CLOCK * per_ns
    return Machine(cpu.model(), CPU_MEMORY_GBPS, peaks, bound_gbps=within, certain=bool(cpu.generation()))


def operations_per_clock(features: frozenset[str], vector_bytes: int, sve: int = 0, sme: int = 0) -> dict[str, float]:
    """Return a core's operations per clock by type: of the fastest of its units for the type, each at its best.

    A multiplication with its addition is two. `sve`, `sme`: lengths of these vectors in bytes. A type without a unit of
    its own (fp8) has the rate of bf16, in which its values are exact.
    """
    arm = "asimd" in features
    fp32 = max(ARM_FMA_UNITS * 16, 4 * sve) / 2 if arm else FMA_UNITS * vector_bytes / 2
    # Dot products of bytes do four times as much as fp32 (VNNI; without it VPMADDUBSW does), half types twice. ARM's
    # matrix instructions BFMMLA and SMMLA do four and eight times as much.
    half, int8 = (4 * fp32 if "bf16" in features else 2 * fp32, (8 if "i8mm" in features else 4) * fp32)
    fp32, half, int8 = (max(fp32, sme * sme / 8), max(half, sme * sme / 4), max(int8, sme * sme / 2))
    if "amx_bf16" in features or "amx_fp16" in features:
        half = max(half, AMX_HALF)
    if "amx_int8" in features:
        int8 = max(int8, AMX_INT8)
    return {"fp64": fp32 / 2, "fp32": fp32, **dict.fromkeys(("bf16", "fp16", "fp8"), half), "int8": int8}


def native_operations(features: frozenset[str], vector_bytes: int) -> dict[str, float]:
    """Return the operations per clock of an x86 core by type, as `operations_per_clock`, of types with instructions of
    their own. Cores with one unit of the widest vector have half of it."""
    rates = operations_per_clock(features - {"amx_fp16"}, vector_bytes)
    rates["fp16"] = operations_per_clock(features - {"amx_bf16"}, vector_bytes)["fp16"]
    own = {name for name, needed in NATIVE.items() if needed & features}
    return {name: rate for name, rate in rates.items() if name in ("fp64", "fp32") or name in own}


def floor_us(work: Work, machine: Machine) -> float:
    """Return the time in microseconds that no kernel can beat on this machine.

    It counts every operation at the rate of the fastest unit of any type, because the tolerance may allow a narrower
    type, and only bytes that no cache can hold.
    """
    return max(*_floor_us(work, machine))


def floor_limit(work: Work, machine: Machine) -> Limit:
    """Return what sets the floor."""
    arithmetic, memory = _floor_us(work, machine)
    return "memory" if memory >= arithmetic else "arithmetic"


def roofline_us(work: Work, machine: Machine) -> float:
    """Return the roofline in microseconds, from nominal rates: max(flops / peak of the type, bytes / bandwidth of main
    memory) (papers: 2402.16363). It is what to aim at; work in caches or in a narrower type may be below it."""
    return max(*_roofline_us(work, machine))


def roofline_limit(work: Work, machine: Machine) -> Limit:
    """Return what sets the roofline."""
    arithmetic, memory = _roofline_us(work, machine)
    return "memory" if memory >= arithmetic else "arithmetic"


def _floor_us(work: Work, machine: Machine) -> tuple[float, float]:
    moved = max(0.0, work.bytes - machine.kept_bytes)
    return work.flops / machine.most_gflops * 1e-3, moved / (machine.bound_gbps or machine.memory_gbps) * 1e-3


def _roofline_us(work: Work, machine: Machine) -> tuple[float, float]:
    peak = machine.peak_gflops.get(work.dtype, machine.most_gflops)
    return work.flops / peak * 1e-3, work.bytes / machine.memory_gbps * 1e-3
