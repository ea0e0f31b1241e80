"""Peaks of machines, with their sources: vendor figures, dense, at boost clock."""

import functools
from dataclasses import dataclass

from kernel_scientist.hardware import cpu
from kernel_scientist.records.kernel import Work


@dataclass(frozen=True)
class Machine:
    """Peak rates: bandwidth of main memory in GB/s, arithmetic in GFLOP/s by type."""

    name: str
    memory_gbps: float
    peak_gflops: dict[str, float]
    source: str


CLOCK_GHZ = 5.5
"""No current server core boosts higher; a floor must not be above what is possible."""
FMA_UNITS = 2
MEMORY_GBPS_PER_SOCKET = 600.0
"""Twelve channels of DDR5-6000: what a guest cannot see but may enjoy."""


@functools.cache
def this_cpu() -> Machine:
    """Return an upper bound for this CPU: two FMA units of the widest vector per core at 5.5 GHz; fp8 and bf16 at twice
    the fp32 rate (dot-product instructions). Deliberately optimistic: it is used as a floor."""
    lanes = cpu.vector_bytes() / 4
    fp32 = cpu.cores() * lanes * FMA_UNITS * 2 * CLOCK_GHZ
    peaks = {"fp64": fp32 / 2, "fp32": fp32, "bf16": 2 * fp32, "fp16": 2 * fp32, "fp8": 2 * fp32}
    return Machine(cpu.model(), MEMORY_GBPS_PER_SOCKET, peaks, "upper bound from features and core count")


def floor_us(work: Work, machine: Machine) -> float:
    """Return the roofline floor in microseconds: max(flops / peak, bytes / bandwidth) (papers: 2402.16363)."""
    peak = machine.peak_gflops.get(work.dtype, max(machine.peak_gflops.values()))
    return max(work.flops / peak, work.bytes / machine.memory_gbps) * 1e-3
