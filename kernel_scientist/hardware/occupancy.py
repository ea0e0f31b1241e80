"""How many waves a GPU's compute unit holds: per-architecture limits, and what a kernel's resources leave of them.

Sources: LLVM's AMDGPU backend (AMDGPUBaseInfo.cpp: 512 unified registers and granule 8 since gfx90a, 8 waves per SIMD,
16 barriers per CU, so 16 workgroups of more than one wave; LDS granules 128 and, on gfx950, 320 dwords); AMD Instinct
MI300 and MI350 ISA documents and rocm.docs.amd.com's gpu-arch-specs (4 SIMDs, 64 and 160 KiB of LDS); NVIDIA's CUDA
C++ Programming Guide, table of compute capabilities, and the Hopper tuning guide (64 Ki registers, 64 warps, 32 blocks,
228 KiB per SM of which 1 KiB per block is the system's, 227 KiB per block).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Limit = Literal["waves", "registers", "lds", "workgroup"]


@dataclass(frozen=True)
class Limits:
    """What one compute unit (streaming multiprocessor) of an architecture has."""

    simds: int
    """SIMDs per compute unit (schedulers per multiprocessor)."""
    waves: int
    """Waves that a SIMD holds at most."""
    registers: int
    """32-bit registers per lane and SIMD, shared by its waves; on AMD accumulation registers are taken from them."""
    register_granule: int
    """A wave's registers per lane are allocated in multiples of this."""
    accumulation_alignment: int
    """Vector registers are rounded up to this where accumulation registers follow them."""
    wave_registers: int
    """Registers per lane that one wave may have at most."""
    lds: int
    """Bytes of local data share (shared memory) per compute unit."""
    lds_workgroup: int
    """Bytes of it that one workgroup may have."""
    lds_granule: int
    lds_reserved: int
    """Bytes that the system takes for each workgroup besides."""
    workgroups: int
    """Workgroups of several waves per compute unit at most."""
    lone_workgroups: int
    """Workgroups of one wave per compute unit at most."""
    wave: int
    """Lanes."""


_CDNA3 = Limits(4, 8, 512, 8, 4, 512, 65536, 65536, 512, 0, 16, 32, 64)
_CDNA4 = Limits(4, 8, 512, 8, 4, 512, 163840, 163840, 1280, 0, 16, 32, 64)
_HOPPER = Limits(4, 16, 512, 8, 1, 256, 233472, 232448, 128, 1024, 32, 32, 32)
LIMITS = {"gfx942": _CDNA3, "gfx950": _CDNA4, "sm_90": _HOPPER}


class Occupancy(NamedTuple):
    """Waves per SIMD that fit at the same time, and what ends them."""

    waves: int
    limited_by: Limit


def limits(arch: str) -> Limits:
    """Return an architecture's limits. Raises ValueError for one that is not in the table."""
    if arch not in LIMITS:
        raise ValueError(f"no limits are known for {arch!r}; known are {', '.join(LIMITS)}")
    return LIMITS[arch]


def resident(arch: str, num_warps: int, vgpr: int, agpr: int, lds_bytes: int) -> int:
    """Return how many workgroups of `num_warps` waves one compute unit holds; 0 where not even one fits."""
    return min(_fits(arch, num_warps, vgpr, agpr, lds_bytes).values())


def occupancy(arch: str, num_warps: int, vgpr: int, agpr: int, lds_bytes: int) -> Occupancy:
    """Return the waves per SIMD that whole workgroups make (at least 1 where one fits), and what limits them.

    vgpr, agpr: vector and accumulation registers per lane. lds_bytes: of a workgroup. `workgroup` limits where the
    SIMDs have room for more waves, but not for another whole workgroup, or where workgroups are counted out.
    """
    limit = limits(arch)
    fits = _fits(arch, num_warps, vgpr, agpr, lds_bytes)
    count = min(fits.values())
    total = count * num_warps
    waves = max(1, total // limit.simds) if count else 0
    return Occupancy(waves, _reason(fits, count, waves, waves_by_registers(arch, vgpr, agpr)))


def waves_by_registers(arch: str, vgpr: int, agpr: int) -> int:
    """Return the waves per SIMD that the registers alone allow: what LLVM prints as `; Occupancy:` without LDS."""
    limit = limits(arch)
    total = _up(vgpr, limit.accumulation_alignment) + agpr if agpr else vgpr
    if total > limit.wave_registers:
        return 0
    return min(limit.waves, limit.registers // max(_up(total, limit.register_granule), limit.register_granule))


def _fits(arch: str, num_warps: int, vgpr: int, agpr: int, lds_bytes: int) -> dict[Limit, int]:
    """Return how many workgroups each resource alone would hold; first what is named where several are equal."""
    if num_warps < 1:
        raise ValueError(f"a workgroup of {num_warps} waves")
    limit = limits(arch)
    lds = _up(lds_bytes, limit.lds_granule) + limit.lds_reserved
    by_lds = limit.lds // lds if lds else limit.lone_workgroups
    return {
        "waves": limit.simds * limit.waves // num_warps,
        "registers": limit.simds * waves_by_registers(arch, vgpr, agpr) // num_warps,
        "lds": by_lds if lds_bytes <= limit.lds_workgroup else 0,
        "workgroup": limit.lone_workgroups if num_warps == 1 else limit.workgroups,
    }


def _reason(fits: dict[Limit, int], count: int, waves: int, by_registers: int) -> Limit:
    binding: list[Limit] = [name for name, fit in fits.items() if fit == count]
    if binding[0] == "registers" and count and waves < by_registers:  # it is not registers that are short
        return binding[1] if len(binding) > 1 else "workgroup"
    return binding[0]


def _up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
