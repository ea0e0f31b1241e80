"""Findings about compiled code on its GPU, as sentences for the Designer."""

import re
from collections.abc import Sequence

from kernel_scientist.gpu.isa.arch_mismatch import suspicions
from kernel_scientist.gpu.isa.tally import CONFLICT
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject

NARROW_BITS = 32
NARROW_COUNT = 4
"""Narrow accesses in loops from which a finding is reported; fewer may be a scale or an index."""
CONFLICT_CYCLES = 16
"""Cycles per iteration from which bank conflicts are reported."""
LOW = 0.25
"""Share of a SIMD's maximum waves below which occupancy is low."""
_MULTIPLIES = re.compile(r"\btl\.dot(_scaled)?\b|__builtin_amdgcn_mfma|\bv_mfma_|\bwmma::|\brocwmma::|\bwgmma\b")


def findings(objects: Sequence[CodeObject], arch: str, source_text: str) -> tuple[str, ...]:
    """Return findings about the code objects and the source, each sentence once, the most important first."""
    said = [
        line
        for check in (_lds, _spills, _scratch, _occupancy, _narrow, _conflicts)
        for code in objects
        for line in check(code)
    ]
    return tuple(dict.fromkeys([*suspicions(source_text, arch), *said, *_matrix(objects, source_text)]))


def _lds(code: CodeObject) -> list[str]:
    limit = occupancy.LIMITS.get(code.arch)
    if limit is None or code.lds_bytes <= limit.lds_workgroup:
        return []
    return [
        f"{code.kernel}: a workgroup takes {code.lds_bytes} bytes of LDS, {code.arch} has {limit.lds_workgroup}: "
        "it does not start"
    ]


def _spills(code: CodeObject) -> list[str]:
    if not code.spills:
        return []
    what = "bytes stored to local memory" if code.arch.startswith("sm_") else "registers spilled to scratch memory"
    return [f"{code.kernel}: {code.spills} {what} ({code.scratch_bytes} bytes per lane)"]


def _scratch(code: CodeObject) -> list[str]:
    if code.spills or not code.scratch_bytes:
        return []
    return [
        f"{code.kernel}: {code.scratch_bytes} bytes of scratch memory per lane: an array of a lane's own that is not "
        "kept in registers, or a call that is not inlined"
    ]


def _occupancy(code: CodeObject) -> list[str]:
    limit = occupancy.LIMITS.get(code.arch)
    if limit is None or code.occupancy > LOW * limit.waves or not code.limited_by:
        return []
    uses = f"{code.vgpr} + {code.agpr} registers, {code.lds_bytes} bytes of LDS, {code.num_warps} waves per workgroup"
    what = f"{code.occupancy} of {limit.waves} waves per SIMD fit, limited by {code.limited_by}"
    return [f"{code.kernel}: {what} ({uses})"]


def _narrow(code: CodeObject) -> list[str]:
    """Return sentences about memory instructions in loops that move less than a register's width."""
    said: list[str] = []
    for way in ("lds_read", "lds_write", "vmem_load", "vmem_store"):
        found: dict[int, int] = {}
        for level in code.mix[1:]:
            for kind, count in level.items():
                name, _, bits = kind.partition(" ")
                if name == way and 0 < int(bits) < NARROW_BITS:
                    found[int(bits)] = found.get(int(bits), 0) + count
        said += [
            f"{code.kernel}: {count} {way} instructions of {bits} bits per lane in its loops; 128 are possible"
            for bits, count in found.items()
            if count >= NARROW_COUNT
        ]
    return said


def _conflicts(code: CodeObject) -> list[str]:
    """Return a sentence about conflicts between banks of the LDS in loops."""
    cycles = sum(level.get(CONFLICT, 0) for level in code.mix[1:])
    if cycles < CONFLICT_CYCLES:
        return []
    return [f"{code.kernel}: bank conflicts add at least {cycles} cycles to a wave's LDS accesses in its loops"]


def _matrix(objects: Sequence[CodeObject], source: str) -> list[str]:
    if not objects or any(code.mfma for code in objects) or not _MULTIPLIES.search(source):
        return []
    names = ", ".join(dict.fromkeys(code.kernel for code in objects))
    return [f"{names}: the source multiplies matrices, but there is no matrix instruction in the code"]
