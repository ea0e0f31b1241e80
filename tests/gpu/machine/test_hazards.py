"""Missing s_nop: every rule with the ISA document's number of wait states, and compiled code whose s_nop is lowered."""

import re

import pytest

from kernel_scientist.gpu.machine import listing, static_checks
from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine.listings import missing, omitted

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
X2, X4 = (
    "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[20:21], v[22:23], v[0:3]",
    "v_mfma_f32_16x16x16_f16 v[0:3], v[20:21], v[22:23], v[0:3]",
)
X8, X16 = (
    f"v_mfma_f32_32x32x{shape} v[0:{last}], v[40:41], v[42:43], v[0:{last}]"
    for shape, last in (("16_fp8_fp8", 15), ("4_2b_bf16", 31))
)
S8, S16 = (
    "v_mfma_f32_16x16x4_f32 v[0:3], v20, v22, v[0:3]",
    "v_mfma_f32_32x32x2_f32 v[0:15], v20, v22, v[0:15]",
)
D4, D8 = (
    "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[20:21], v[22:23], v[0:1]",
    "v_mfma_f64_16x16x4_f64 v[0:7], v[20:21], v[22:23], v[0:7]",
)
SPARSE = "v_smfmac_f32_16x16x32_f16 v[0:3], v[20:21], v[22:25], v26"
LOAD = "global_load_dword v1, v[50:51], off"
USE, STORE, LDS, OVER = (
    "v_add_f32_e32 v50, v1, v1",
    "global_store_dword v[50:51], v1, off",
    "ds_write_b32 v50, v1",
    "v_mov_b32_e32 v1, 0",
)
TIMES = "v_mfma_f32_16x16x16_f16 v[60:63], v[0:1], v[22:23], v[60:63]"
PART = "v_mfma_f32_16x16x16_f16 v[2:5], v[70:71], v[72:73], v[2:5]"
PART_S, PART_D = (
    "v_mfma_f32_16x16x4_f32 v[1:4], v20, v22, v[1:4]",
    "v_mfma_f64_4x4x4_4b_f64 v[2:3], v[20:21], v[22:23], v[0:1]",
)
COMPARE, EXEC = "v_cmp_gt_f32_e64 s[4:5], v1, v2", "v_cmpx_gt_f32_e32 v1, v2"


@pytest.mark.parametrize(
    "first, second, states",
    [
        *((X2, use, 5) for use in (USE, STORE, LDS, OVER)),
        *((X4, use, 7) for use in (USE, STORE, LDS, OVER, "v_accvgpr_write_b32 a0, v1", LOAD)),
        *((SPARSE, use, 7) for use in (USE, STORE, LDS, OVER)),
        *((X8, use, 11) for use in (USE, STORE, LDS, OVER)),
        *((X16, use, 19) for use in (USE, STORE, LDS, OVER)),
        *((S8, use, 10) for use in (USE, STORE, LDS, OVER)),
        *((S16, use, 18) for use in (USE, STORE, LDS, OVER)),
        *((D4, use, states) for use, states in ((USE, 6), (STORE, 9), (LDS, 9), (OVER, 6))),
        *((D8, use, states) for use, states in ((USE, 11), (STORE, 18), (LDS, 18), (OVER, 11))),
        *((first, TIMES, need) for first, need in ((X2, 5), (X4, 7), (X8, 11), (X16, 19), (S8, 10), (D4, 6), (D8, 11))),
        *((first, PART, need) for first, need in ((X2, 3), (X4, 5), (X8, 9), (X16, 17), (S8, 0), (S16, 0), (D8, 0))),
        *((first, PART_S, states) for first, states in ((X4, 5), (X8, 9), (S8, 8), (S16, 16), (D8, 9))),
        *((first, first, need) for first, need in ((X2, 2), (X4, 0), (X8, 0), (X16, 0), (S16, 0), (D4, 4), (D8, 0))),
        (D8, PART_D, 9),
        # What a matrix instruction still reads: overwritten.
        *((f"v_mfma_f32_{shape} a[0:{last}], v[40:41], v[42:43], v[0:{last}]", OVER, need) for shape, last, need in (
            ("4x4x4_16b_f16", 3, 1), ("16x16x16_f16", 3, 3), ("32x32x8_f16", 15, 7), ("32x32x4_2b_bf16", 31, 15))),
        ("v_mfma_f32_16x16x4_f32 a[0:3], v20, v22, v[0:3]", OVER, 0),
        # Vector instructions before matrix instructions.
        ("v_mov_b32_e32 v20, 0", X4, 2),
        ("v_mov_b32_e32 v3, 0", X4, 2),
        ("v_accvgpr_write_b32 a3, v9", "v_mfma_f32_16x16x16_f16 a[0:3], v[20:21], v[22:23], a[0:3]", 2),
        ("v_dot2_f32_f16 v20, v50, v51, v52", X4, 0),
        ("v_mov_b32_e32 v30, 0", X4, 0),
        (EXEC, X4, 4),
        # Vector instructions among themselves.
        ("v_exp_f32_e32 v1, v9", USE, 1),
        ("v_exp_f32_e32 v1, v9", "v_rcp_f32_e32 v2, v1", 0),
        ("v_cvt_f16_f32_sdwa v1, v9 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD", USE, 1),
        ("v_mad_u16 v1, v9, v9, v9 op_sel:[0,0,0,1]", USE, 1),
        ("v_mov_b32_e32 v1, v9", USE, 0),
        ("v_mov_b32_e32 v1, v9", "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
        ("v_mov_b32_e32 v1, v9", "v_add_co_u32_dpp v2, vcc, v1, v3 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
        ("v_mov_b32_e32 v3, v9", "v_add_co_u32_dpp v2, vcc, v1, v3 row_shr:1 row_mask:0xf bank_mask:0xf", 0),
        (EXEC, "v_mov_b32_dpp v2, v7 row_shr:1 row_mask:0xf bank_mask:0xf", 5),
        ("v_mov_b32_e32 v1, v9", "v_readlane_b32 s4, v1, 3", 1),
        ("v_mov_b32_e32 v1, v9", "v_readfirstlane_b32 s4, v1", 1),
        (EXEC, "v_readfirstlane_b32 s4, v7", 4),
        (COMPARE, "v_cndmask_b32_e64 v7, v8, v9, s[4:5]", 2),
        ("v_cmp_gt_f32_e32 vcc, v1, v2", "v_cndmask_b32_e32 v7, v8, v9, vcc", 2),
        ("v_div_scale_f32 v7, vcc, v1, v2, v1", "v_div_fmas_f32 v7, v8, v9, v10", 4),
        ("v_readfirstlane_b32 s4, v1", "v_readlane_b32 s6, v7, s4", 4),
        ("v_readfirstlane_b32 s4, v1", "v_writelane_b32 v7, s6, s4", 4),
        ("s_mov_b32 s4, s5", "v_readlane_b32 s6, v7, s4", 0),
        ("v_dot2_f32_f16 v1, v50, v51, v1", USE, 3),
        ("v_dot2_f32_f16 v1, v50, v51, v1", "v_dot2_f32_f16 v1, v50, v51, v1", 0),
        ("v_dot2_f32_f16 v1, v50, v51, v1", "v_dot2_f32_f16 v2, v1, v51, v2", 3),
        # Memory.
        ("v_readfirstlane_b32 s4, v1", "global_load_dword v2, v3, s[4:5]", 5),
        ("v_readfirstlane_b32 s4, v1", "buffer_load_dword v2, v3, s[4:7], 0 offen", 5),
        ("v_readfirstlane_b32 s4, v1", "s_load_dword s8, s[4:5], 0x0", 0),
        ("global_store_dwordx4 v[50:51], v[0:3], off", OVER, 2),
        ("global_store_dwordx2 v[50:51], v[0:1], off", OVER, 0),
        ("buffer_store_dwordx4 v[0:3], v9, s[0:3], 0 offen", OVER, 2),
        ("global_atomic_cmpswap_x2 v[50:51], v[0:3], off", OVER, 2),
        ("global_atomic_cmpswap_x2 v[60:61], v[50:51], v[0:3], off sc0", OVER, 2),
        ("global_atomic_cmpswap v[50:51], v[0:1], off", OVER, 0),
        ("buffer_store_dwordx4 v[0:3], v9, s[0:3], s4 offen", OVER, 0),
        # Scalar unit.
        ("s_mov_b32 m0, s4", "buffer_load_dword v0, s[0:3], 0 offen lds", 1),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)", 0),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s4", "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s4", 2),
    ],
)  # fmt: skip
def test_wait_states_between_two_instructions(first: str, second: str, states: int) -> None:
    for between in {0, 1, states - 1, states} - {-1}:
        filled = ["s_nop 0"] * between
        lacking = states - between
        expected = [(between + 2, f"s_nop {lacking - 1}")] if lacking > 0 else []
        assert missing(first, *filled, second) == expected, between
        if between:
            nops = [f"s_nop {n}" for n in (between - 1,)]
            assert [remedy for _, remedy in missing(first, *nops, second)] == [remedy for _, remedy in expected]


def test_the_way_round_a_loop_counts() -> None:
    loop = ("again:", USE, *["s_nop 0"] * 2, X4, "s_cbranch_scc1 again")
    (one,) = omitted(*loop)
    assert one.statement.mnemonic == "v_add_f32_e32"
    assert one.remedy == "s_nop 5"


def test_a_sentence_says_how_many_wait_states_are_needed() -> None:
    (one,) = omitted(X4, "s_nop 2", USE)
    assert one.sentence == (
        f"assembly line 4: `{USE}` reads v1 3 wait states after `{X4}` (assembly line 2), 7 are needed: "
        "`s_nop 3` is missing"
    )


MATRICES = """
#include <hip/hip_runtime.h>
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16 __attribute__((ext_vector_type(16)));
typedef float f32 __attribute__((ext_vector_type(32)));
typedef double d4 __attribute__((ext_vector_type(4)));
typedef short s4 __attribute__((ext_vector_type(4)));
#define KERNEL(name, factor, result, builtin) \\
  extern "C" __global__ void name(const factor* a, const factor* b, result* c) { \\
    int t = threadIdx.x; result zero = {}; \\
    result x = builtin(a[t], b[t], zero, 0, 0, 0); c[t] = builtin(a[t + 64], b[t + 64], x, 0, 0, 0) + 1; }
KERNEL(bf16, s4, f16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
KERNEL(fp8, long, f4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
KERNEL(plain, float, f16, __builtin_amdgcn_mfma_f32_32x32x2f32)
KERNEL(blocks, s4, f32, __builtin_amdgcn_mfma_f32_32x32x4bf16_1k)
KERNEL(narrow, s4, f4, __builtin_amdgcn_mfma_f32_4x4x4bf16_1k)
KERNEL(wide, double, d4, __builtin_amdgcn_mfma_f64_16x16x4f64)
"""


@needs_hip
def test_every_s_nop_of_compiled_matrix_code_is_needed_and_suffices() -> None:
    built = hip.compile_hip(MATRICES, "gfx942", ["-O3"])
    assert built.ok, built.log
    text = built.assembly
    assert static_checks.omissions(listing.read(text)) == ()
    nops = list(re.finditer(r"\bs_nop (\d+)$", text, re.MULTILINE))
    assert len([found for found in nops if int(found[1]) > 1]) >= 5
    for found in nops:
        instead = f"s_nop {int(found[1]) - 1}" if int(found[1]) else ""
        lower = f"{text[: found.start()]}{instead}{text[found.end() :]}"
        (first, *_) = static_checks.omissions(listing.read(lower))
        assert first.remedy == "s_nop 0", found[0]
