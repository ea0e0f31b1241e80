"""Instructions run in the machine: the registers of many waves before, and after.

Each case gets an image of v0 to v15, s0 to s15, VCC, EXEC, M0 and SCC for each of its waves; two subroutines of the
kernel load and store it, so that whatever an instruction must leave alone is compared as well.
"""

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import build, launch, library
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch, Options
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.machine.memory import Memory
from tests.conftest import ROOT

Array = np.ndarray[Any, np.dtype[Any]]
LANES, VECTORS, SCALARS = 64, 16, 24
VCC, EXEC, M0, SCC = 16, 18, 20, 21
"""Places in the image of the scalar registers, after s0 to s15."""
LDS_BYTES, SCRATCH_BYTES = 4096, 256
USUAL = Options()
_STORE = 256 * VECTORS


@dataclass
class Case:
    """Text with one instruction under test or more, and the registers before it."""

    text: str
    v: Array
    """Shape (waves, 16, 64)."""
    s: Array
    """Shape (waves, 24)."""
    memory: Array | None = None
    """Shape (waves, bytes): global memory that s[88:89] points to; it is changed in place."""


@dataclass
class Outcome:
    """Registers after a case."""

    v: Array
    s: Array


@functools.cache
def machine() -> Library:
    """The machine from the laboratory's own cache: its build takes a minute and does not depend on a test."""
    return library.loaded(build.build(ROOT / ".cache" / "machine"))


def random_image(waves: int, seed: int) -> tuple[Array, Array]:
    """Registers of random bits with all lanes active."""
    random = np.random.default_rng(seed)
    v = random.integers(0, 1 << 32, (waves, VECTORS, LANES), np.uint32)
    s = random.integers(0, 1 << 32, (waves, SCALARS), np.uint32)
    s[:, EXEC : EXEC + 2] = 0xFFFFFFFF
    s[:, SCC] &= 1
    s[:, SCC + 1 :] = s[:, M0, None]  # the image ends with two copies of M0
    return v, s


def active(s: Array) -> Array:
    """Masks of lanes, shape (waves, 64), of EXEC."""
    return mask(s, EXEC)


def mask(s: Array, place: int) -> Array:
    """The 64 bits of a pair of scalar registers, shape (waves, 64)."""
    both = s[:, place].astype(np.uint64) | s[:, place + 1].astype(np.uint64) << np.uint64(32)
    return (both[:, None] >> np.arange(LANES, dtype=np.uint64) & np.uint64(1)).astype(bool)


def set_mask(s: Array, place: int, bits: Array) -> None:
    both = (bits.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(1, dtype=np.uint64)
    s[:, place] = both & np.uint64(0xFFFFFFFF)
    s[:, place + 1] = both >> np.uint64(32)


def run(
    cases: Sequence[Case], *, denormals: int = 3, options: Options = USUAL, cooperative: bool = False
) -> list[Outcome]:
    """Run cases that have equally many waves; none may lead to a finding."""
    outcomes, result = findings(cases, denormals=denormals, options=options, cooperative=cooperative)
    assert not result.findings, [(f.fault.name, f.statement.mnemonic, f.statement.operands) for f in result.findings]
    return outcomes


def findings(
    cases: Sequence[Case], *, denormals: int = 3, options: Options = USUAL, cooperative: bool = False
) -> tuple[list[Outcome], launch.LaunchResult]:
    """Run cases that have equally many waves; return the result of the launch as well."""
    waves = len(cases[0].v)
    v = np.ascontiguousarray(np.stack([case.v for case in cases], 1))
    s = np.ascontiguousarray(np.stack([case.s for case in cases], 1))
    v_out, s_out = np.zeros_like(v), np.zeros((*s.shape[:2], LANES), np.uint32)
    size = max(case.memory.shape[1] if case.memory is not None else 0 for case in cases)
    memory = np.zeros((waves, len(cases), size), np.uint8)
    for n, case in enumerate(cases):
        if case.memory is not None:
            memory[:, n, : case.memory.shape[1]] = case.memory
    allowed = Memory()
    for array in (v, s, v_out, s_out, memory):
        allowed.add(array.ctypes.data, array.nbytes, array is v_out or array is s_out or array is memory)
    arguments = struct.pack("<5Q", *(array.ctypes.data for array in (v, s, v_out, s_out, memory)))
    code = Code(machine(), text([case.text for case in cases], size, denormals))
    assert not code.missing, [statement.mnemonic for statement in code.missing]
    launched = KernelLaunch(code, "k", (waves, 1, 1), (LANES, 1, 1), arguments, cooperative=cooperative)
    result = launch.run(launched, allowed, options)
    for n, case in enumerate(cases):
        if case.memory is not None:
            case.memory[...] = memory[:, n, : case.memory.shape[1]]
    return [Outcome(v_out[:, n], s_out[:, n, :SCALARS]) for n in range(len(cases))], result


def text(cases: Sequence[str], memory_bytes: int, denormals: int = 3) -> str:
    """The kernel. s80 to s89 point to images and memory, s98 and s99 hold return addresses, v255 lane offsets."""
    count = len(cases)
    strides = (_STORE, 4 * SCALARS, _STORE, 4 * LANES, memory_bytes)
    begin = [
        "s_load_dwordx8 s[80:87], s[0:1], 0x0",
        "s_load_dwordx2 s[88:89], s[0:1], 0x20",
        "v_lshlrev_b32_e32 v255, 2, v0",
    ]
    for n, stride in enumerate(strides):
        begin += [
            f"s_mul_i32 s90, s2, {hex(stride * count)}",
            f"s_add_u32 s{80 + 2 * n}, s{80 + 2 * n}, s90",
            f"s_addc_u32 s{81 + 2 * n}, s{81 + 2 * n}, 0",
        ]
    body = [line for case in cases for line in ("s_call_b64 s[98:99], load", case, "s_call_b64 s[98:99], store")]
    load = [f"global_load_dword v{n}, v255, s[80:81] offset:{256 * n}" for n in range(VECTORS)]
    store = [f"global_store_dword v255, v{n}, s[84:85] offset:{256 * n}" for n in range(VECTORS)]
    names = [*(f"s{n}" for n in range(16)), "s72", "s73", "s74", "s75", "s76", "s77", "s76", "s76"]
    lines = [
        *("k:", *begin, *body, "s_endpgm"),
        *("load:", "s_mov_b64 exec, -1", *load),
        *("s_load_dwordx16 s[0:15], s[82:83], 0x0", "s_load_dwordx8 s[72:79], s[82:83], 0x40"),
        *("s_waitcnt vmcnt(0) lgkmcnt(0)", "s_mov_b64 vcc, s[72:73]", "s_mov_b32 m0, s76"),
        *("s_cmp_lg_u32 s77, 0", "s_mov_b64 exec, s[74:75]", "s_setpc_b64 s[98:99]"),
        *(
            "store:",
            "s_cselect_b32 s77, 1, 0",
            "s_mov_b64 s[72:73], vcc",
            "s_mov_b64 s[74:75], exec",
            "s_mov_b32 s76, m0",
        ),
        *("s_mov_b64 exec, -1", *store, "v_mov_b32_e32 v254, 0"),
        *(f"v_writelane_b32 v254, {name}, {lane}" for lane, name in enumerate(names)),
        "global_store_dword v255, v254, s[86:87]",
    ]
    for n, stride in enumerate(strides):
        lines += [
            f"s_add_u32 s{80 + 2 * n}, s{80 + 2 * n}, {hex(stride)}",
            f"s_addc_u32 s{81 + 2 * n}, s{81 + 2 * n}, 0",
        ]
    lines.append("s_setpc_b64 s[98:99]")
    return "\t.text\n" + "\n".join(lines) + _END.format(denormals=denormals, lds=LDS_BYTES, scratch=SCRATCH_BYTES)


_END = """
\t.section .rodata,"a"
\t.amdhsa_kernel k
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_next_free_vgpr 256
\t\t.amdhsa_next_free_sgpr 100
\t\t.amdhsa_accum_offset 256
\t\t.amdhsa_float_denorm_mode_32 {denormals}
\t.end_amdhsa_kernel
\t.text
\t.amdgpu_metadata
---
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: k
    .kernarg_segment_size: 40
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
...
\t.end_amdgpu_metadata
"""
