"""Occupancy: how many waves a compute unit holds, from the limits of its architecture and a kernel's resources.

Sources: LLVM's AMDGPU backend (AMDGPUBaseInfo.cpp: 512 unified registers and granule 8 since gfx90a, 8 waves per SIMD,
16 barriers per CU, so 16 workgroups of more than one wave; LDS granules 128 and, on gfx950, 320 dwords); AMD Instinct
MI300 and MI350 ISA documents and rocm.docs.amd.com's gpu-arch-specs (4 SIMDs, 64 and 160 KiB of LDS, 12.5 KiB of scalar
registers); GCNSubtarget::getOccupancyWithNumSGPRs (10, 9, 8 waves of 80, 88, 100 scalar registers); NVIDIA's CUDA
C++ Programming Guide, table of compute capabilities, and the Hopper tuning guide (64 Ki registers, 64 warps, 32 blocks,
228 KiB per SM of which the system takes 1 KiB per block, 227 KiB per block).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Limit = Literal["waves", "registers", "scalars", "lds", "workgroup"]

WORDS = {
    "waves": "the waves that a SIMD holds",
    "scalars": "scalar registers",
    "lds": "LDS",
    "workgroup": "the number of workgroups that a compute unit holds",
}
"""Limits, where the name alone does not say what is meant."""
MOST_THREADS = 1024
"""Of a workgroup, on all of these GPUs."""


@dataclass(frozen=True)
class ComputeUnit:
    """Resources of one compute unit (streaming multiprocessor) of an architecture."""

    simds: int
    """SIMDs per compute unit (schedulers per multiprocessor)."""
    waves: int
    """Most waves per SIMD."""
    registers: int
    """32-bit registers per lane and SIMD, shared by its waves; AMD's accumulation registers are part of them."""
    register_granule: int
    """A wave's registers per lane are allocated in multiples of this."""
    wave_registers: int
    """Most registers per lane of one wave."""
    scalars: int
    """Scalar registers per SIMD, shared by its waves; 0: they limit nothing."""
    lds: int
    """Bytes of local data share (shared memory) per compute unit."""
    lds_workgroup: int
    """Most bytes of it per workgroup."""
    lds_granule: int
    lds_reserved: int
    """Bytes that the system takes per workgroup in addition."""
    workgroups: int
    """Most workgroups of several waves per compute unit."""
    lone_workgroups: int
    """Most workgroups of one wave per compute unit."""


LIMITS = {
    "gfx942": ComputeUnit(4, 8, 512, 8, 512, 800, 65536, 65536, 512, 0, 16, 32),
    "gfx950": ComputeUnit(4, 8, 512, 8, 512, 800, 163840, 163840, 1280, 0, 16, 32),
    "sm_90": ComputeUnit(4, 16, 512, 8, 256, 0, 233472, 232448, 128, 1024, 32, 32),
}


class Occupancy(NamedTuple):
    """Waves per SIMD that fit at the same time, and the resource that limits them."""

    waves: int
    limited_by: Limit


def limits(arch: str) -> ComputeUnit:
    """Return an architecture's limits. Raises ValueError for one that is not in the table."""
    if arch not in LIMITS:
        raise ValueError(f"no limits are known for {arch!r}; known are {', '.join(LIMITS)}")
    return LIMITS[arch]


def resident(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int = 0) -> int:
    """Return how many workgroups of `num_warps` waves one compute unit holds; 0 if not even one fits.

    The arguments are what waves and workgroups take, not what they use: `CodeObject.needs`.
    """
    return min(_fits(arch, num_warps, registers, lds_bytes, scalars).values())


def for_one_more(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int = 0) -> tuple[int, int] | None:
    """Return the most registers per lane and bytes of LDS with which one more workgroup would fit.

    None if the waves, workgroups or scalar registers of a compute unit allow no more.
    """
    limit, count = limits(arch), resident(arch, num_warps, registers, lds_bytes, scalars) + 1
    waves = -(-count * num_warps // limit.simds)
    if waves > min(limit.waves, _waves_by_scalars(limit, scalars)) or count > (
        limit.lone_workgroups if num_warps == 1 else limit.workgroups
    ):
        return None
    registers = limit.registers // waves // limit.register_granule * limit.register_granule
    lds = limit.lds // count // limit.lds_granule * limit.lds_granule - limit.lds_reserved
    return min(registers, limit.wave_registers), min(lds, limit.lds_workgroup)


def occupancy(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int = 0) -> Occupancy:
    """Return the waves per SIMD of the whole workgroups that fit (at least 1 if one fits), and what limits them.

    registers: per lane, accumulation registers included. lds_bytes: of a workgroup. scalars: registers of a wave. The
    limit is `workgroup` if the SIMDs have room for more waves but not for another whole workgroup, or if no more
    workgroups are allowed.
    """
    fits = _fits(arch, num_warps, registers, lds_bytes, scalars)
    count = min(fits.values())
    waves = max(1, count * num_warps // limits(arch).simds) if count else 0
    room: dict[Limit, int] = {
        "registers": waves_by_registers(arch, registers),
        "scalars": _waves_by_scalars(limits(arch), scalars),
    }
    limiting: list[Limit] = [n for n, fit in fits.items() if fit == count and not 0 < waves < room.get(n, 0)]
    return Occupancy(waves, (*limiting, "workgroup")[0])


def limiting(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int = 0) -> tuple[Limit, ...]:
    """Return all resources that allow no more workgroups than fit; the arguments are those of `resident`."""
    fits = _fits(arch, num_warps, registers, lds_bytes, scalars)
    names: list[Limit] = [name for name, fit in fits.items() if fit == min(fits.values())]
    return ("waves",) if "waves" in names else tuple(names)  # more of a resource lets no more waves into a SIMD


def limit_words(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int = 0) -> str:
    """Return what lets no more workgroups into a compute unit; the arguments are those of `resident`.

    Such as `registers (3 waves per SIMD would fit, one more workgroup needs 4)`, where workgroups are large.
    """
    count, simds = resident(arch, num_warps, registers, lds_bytes, scalars), limits(arch).simds
    names, fit = limiting(arch, num_warps, registers, lds_bytes, scalars), waves_by_registers(arch, registers)
    needed = -(-(count + 1) * num_warps // simds)
    words = " and ".join(WORDS.get(name, name) for name in names)
    if "registers" not in names or not count * num_warps < fit * simds < needed * simds:
        return words
    waves = "waves" if arch.startswith("gfx") else "warps"
    return f"{words} ({fit} {waves} per SIMD would fit, one more workgroup needs {needed})"


def waves_by_registers(arch: str, registers: int) -> int:
    """Return the waves per SIMD that the registers per lane alone allow."""
    limit = limits(arch)
    if registers > limit.wave_registers:
        return 0
    return min(limit.waves, limit.registers // max(_up(registers, limit.register_granule), limit.register_granule))


def _waves_by_scalars(limit: ComputeUnit, scalars: int) -> int:
    return min(limit.waves, limit.scalars // scalars) if limit.scalars and scalars else limit.waves


def _fits(arch: str, num_warps: int, registers: int, lds_bytes: int, scalars: int) -> dict[Limit, int]:
    """Return how many workgroups each resource alone would hold, in the order in which equal limits are reported."""
    if num_warps < 1:
        raise ValueError(f"a workgroup of {num_warps} waves")
    limit = limits(arch)
    lds = _up(lds_bytes, limit.lds_granule) + limit.lds_reserved
    by_lds = limit.lds // lds if lds else limit.lone_workgroups
    return {
        "waves": limit.simds * limit.waves // num_warps,
        "registers": limit.simds * waves_by_registers(arch, registers) // num_warps,
        "scalars": limit.simds * _waves_by_scalars(limit, scalars) // num_warps,
        "lds": by_lds if lds_bytes <= limit.lds_workgroup else 0,
        "workgroup": limit.lone_workgroups if num_warps == 1 else limit.workgroups,
    }


def _up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
