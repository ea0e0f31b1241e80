"""Branches, calls, barriers, waits, and instructions that are refused."""

import numpy as np
import pytest

from kernel_scientist.gpu.machine.launch import Fault
from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, SCC, VCC, Array, Case, random_image

WAVES = 8
NOTHING = (
    *(
        "s_nop 3",
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_waitcnt 0",
        "s_setprio 1",
        "s_icache_inv",
        "s_dcache_inv",
        "s_dcache_wb",
    ),
    *("s_dcache_inv_vol", "s_dcache_wb_vol", "s_sethalt 0", "s_ttracedata", "s_incperflevel 1", "s_decperflevel 1"),
    *("buffer_wbl2 sc1", "buffer_inv sc1", "s_sleep 1", "s_barrier", "s_wakeup"),
)
"""What the machine needs not do anything for."""
BRANCHES = {
    "s_cbranch_scc0": lambda s: s[:, SCC] == 0,
    "s_cbranch_scc1": lambda s: s[:, SCC] == 1,
    "s_cbranch_vccz": lambda s: ~s[:, VCC : VCC + 2].any(1),
    "s_cbranch_vccnz": lambda s: s[:, VCC : VCC + 2].any(1),
    "s_cbranch_execz": lambda s: ~s[:, EXEC : EXEC + 2].any(1),
    "s_cbranch_execnz": lambda s: s[:, EXEC : EXEC + 2].any(1),
    "s_branch": lambda s: np.ones(len(s), bool),
}
CALLS = {
    "s_getpc_b64 s[6:7]\nGET:\ns_add_u32 s6, s6, FAR@rel32@lo+4\ns_addc_u32 s7, s7, FAR@rel32@hi+12\n"
    "s_setpc_b64 s[6:7]\ns_mov_b32 s4, 1\nFAR:\ns_add_u32 s4, s4, 2": 2,
    "s_mov_b32 s5, 0\ns_call_b64 s[6:7], SUB\ns_add_u32 s4, s4, 1\ns_branch OVER\nSUB:\ns_add_u32 s4, s4, 4\n"
    "s_setpc_b64 s[6:7]\nOVER:\ns_nop 0": 5,
    "s_getpc_b64 s[6:7]\ns_add_u32 s6, s6, SUB2@rel32@lo+4\ns_addc_u32 s7, s7, SUB2@rel32@hi+12\n"
    "s_swappc_b64 s[8:9], s[6:7]\ns_add_u32 s4, s4, 1\ns_branch OVER2\nSUB2:\ns_add_u32 s4, s4, 8\n"
    "s_setpc_b64 s[8:9]\nOVER2:\ns_nop 0": 9,
    "s_mov_b32 s5, 5\nLOOP:\ns_add_u32 s4, s4, 3\ns_sub_u32 s5, s5, 1\ns_cmp_lg_u32 s5, 0\ns_cbranch_scc1 LOOP": 15,
}
"""Texts, and what they add to s4."""


HARDWARE = (
    *("s_getreg_b32 s4, hwreg(HW_REG_XCC_ID)", "s_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 4)", "s_memtime s[4:5]"),
    "s_memrealtime s[4:5]",
)
TRAPS = ("s_trap 2",)
REFUSALS = {
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3": "s_setreg_imm32_b32",
    "s_mov_b32 s4, 1\ns_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s4": "s_setreg_b32",
    **{
        f"v_mfma_f32_{shape} v[0:3], {factors}, v[0:3] {blocks}": f"v_mfma_f32_{shape}"
        for shape, factors, blocks in (
            ("16x16x16_f16", "v[4:5], v[6:7]", "cbsz:5 abid:15"),
            ("16x16x32_fp8_fp8", "v[4:5], v[6:7]", "cbsz:1"),
            ("4x4x4_16b_f16", "v[4:5], v[6:7]", "cbsz:5"),
            ("4x4x4_16b_f16", "v[4:5], v[6:7]", "cbsz:2 abid:4"),
        )
    },
}
"""Texts, and the instruction in them that is refused: rounding other than to nearest, blocks that a matrix has not."""


def image() -> tuple[Array, Array]:
    v, s = random_image(WAVES, 4)
    s[::2, VCC : VCC + 2] = 0
    s[1, VCC : VCC + 2], s[3, VCC : VCC + 2] = (1, 0), (0, 1 << 31)
    s[2:5, EXEC : EXEC + 2] = 0
    s[5, EXEC : EXEC + 2] = (0, 4)
    s[:, SCC] = np.arange(WAVES) & 1
    return v, s


def test_what_does_nothing() -> None:
    v, s = random_image(WAVES, 3)
    for text, outcome in zip(NOTHING, harness.run([Case(text, v, s) for text in NOTHING]), strict=True):
        assert (outcome.v == v).all() and (outcome.s == s).all(), text


def test_branches() -> None:
    v, s = image()
    texts = [f"{name} T{n}\ns_mov_b32 s4, 7\nT{n}:\ns_nop 0" for n, name in enumerate(BRANCHES)]
    for (name, rule), outcome in zip(BRANCHES.items(), harness.run([Case(text, v, s) for text in texts]), strict=True):
        np.testing.assert_array_equal(outcome.s[:, 4], np.where(rule(s), s[:, 4], 7), name)


@pytest.mark.parametrize("text", CALLS)
def test_calls_return(text: str) -> None:
    v, s = random_image(WAVES, 4)
    (outcome,) = harness.run([Case(text, v, s)])
    np.testing.assert_array_equal(outcome.s[:, 4], s[:, 4] + np.uint32(CALLS[text]))


def test_a_jump_out_of_the_code_is_a_finding() -> None:
    v, s = random_image(1, 4)
    _, result = harness.findings([Case("s_setpc_b64 s[4:5]", v, s)])
    assert [f.fault for f in result.findings] == [Fault.JUMP]


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_refused(text: str) -> None:
    v, s = random_image(1, 4)
    _, result = harness.findings([Case(text, v, s)])
    fault = Fault.TRAP if text.startswith("s_trap") else Fault.REFUSED
    assert [(f.fault, f.statement.mnemonic) for f in result.findings] == [(fault, REFUSALS[text])]


@pytest.mark.parametrize("text", TRAPS)
def test_a_trap_is_a_finding(text: str) -> None:
    v, s = random_image(1, 4)
    _, result = harness.findings([Case(text, v, s)])
    assert [(f.fault, f.statement.mnemonic) for f in result.findings] == [(Fault.TRAP, "s_trap")]


def test_hardware_registers() -> None:
    v, s = random_image(16, 4)
    chiplet, mode, *_ = harness.run([Case(text, v, s) for text in HARDWARE])
    np.testing.assert_array_equal(chiplet.s[:, 4], np.arange(16) % 8)
    assert (mode.s[:, 4] == 15).all()


def test_output_modifiers_count_only_where_the_mode_allows_them() -> None:
    """Neither with IEEE arithmetic nor where denormal results are kept, as the ISA document says of OMOD."""
    v, s = random_image(WAVES, 4)
    v[:, 2] = 0x3F800000
    both = "v_add_f32_e64 v0, v2, v2 mul:2"
    modes = ("", *(f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 6), {n}\n" for n in (0x3F, 0x3C, 0x1F, 0x1C)))
    outcomes = harness.run([Case(f"{mode}{both}", v, s) for mode in modes])
    sums = [np.ascontiguousarray(one.v[:, 0]).view(np.float32) for one in outcomes]
    for found, wanted in zip(sums, (2, 2, 2, 2, 4), strict=True):
        assert (found == wanted).all()


def test_the_mode_of_fp32_says_nothing_of_fp64_and_of_what_a_division_is_scaled_by() -> None:
    v, s = random_image(WAVES, 4)
    v[:, 2], v[:, 3] = 1, 0  # the least number of fp64
    v[:, 4], v[:, 5] = 0x7E967699, 0x7F000000  # 1e38 and 2^127, whose reciprocal is denormal
    texts = ("v_add_f64 v[0:1], v[2:3], v[2:3]", "v_div_scale_f32 v0, vcc, v5, v5, v4")
    for denormals in (3, 0):
        added, scaled = harness.run([Case(text, v, s) for text in texts], denormals=denormals)
        assert (added.v[:, 0] == 2).all() and (added.v[:, 1] == 0).all()
        assert (scaled.v[:, 0] == 0x5F000000).all()  # 2^63


def test_mode_keeps_or_flushes_denormals() -> None:
    """The kernel's descriptor decides, and s_setreg after it."""
    v, s = random_image(WAVES, 4)
    v[:, 2] = 0x00400000
    add = "v_add_f32_e32 v0, v2, v2"
    keep, flush = (f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), {n}\n" for n in (3, 0))
    texts = [add, flush + add, keep + add]
    for denormals, wanted in ((3, (True, False, True)), (0, (False, False, True))):
        outcomes = harness.run([Case(text, v, s) for text in texts], denormals=denormals)
        assert [bool((x.v[:, 0] == 0x00800000).all()) for x in outcomes] == list(wanted)
