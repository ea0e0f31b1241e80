"""Peak rates of machines, and the roofline floor that follows from them."""

import functools
from dataclasses import dataclass

from kernel_scientist.hardware import cpu
from kernel_scientist.records.kernel import Work

CPU_CLOCK_GHZ = 5.5
"""No current server core boosts higher, so the roofline floor is never too high."""
FMA_UNITS = 2
CPU_MEMORY_GBPS = 600.0
"""Twelve channels of DDR5-6000: a virtual machine cannot see its channels."""


@dataclass(frozen=True)
class Machine:
    """Peak rates: bandwidth of main memory in GB/s, arithmetic in GFLOP/s by type."""

    name: str
    memory_gbps: float
    peak_gflops: dict[str, float]


@functools.cache
def this_cpu() -> Machine:
    """Return an upper bound for this CPU, from its features and cores: it is used as a floor.

    Two FMA units of the widest vector per core; fp8, bf16 and fp16 at twice the fp32 rate (dot-product instructions).
    """
    fp32 = cpu.cores() * cpu.vector_bytes() / 4 * FMA_UNITS * 2 * CPU_CLOCK_GHZ
    peaks = {"fp64": fp32 / 2, "fp32": fp32, **dict.fromkeys(("bf16", "fp16", "fp8"), 2 * fp32)}
    return Machine(cpu.model(), CPU_MEMORY_GBPS, peaks)


def floor_us(work: Work, machine: Machine) -> float:
    """Return the roofline floor in microseconds: max(flops / peak, bytes / bandwidth) (papers: 2402.16363)."""
    peak = machine.peak_gflops.get(work.dtype, max(machine.peak_gflops.values()))
    return max(work.flops / peak, work.bytes / machine.memory_gbps) * 1e-3
