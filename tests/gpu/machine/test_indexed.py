"""Registers whose numbers depend on M0, and the barrier of all workgroups."""

from typing import Any

import numpy as np
import pytest

from kernel_scientist.gpu.machine.dispatch import Options
from kernel_scientist.gpu.machine.launch import Fault
from kernel_scientist.gpu.machine.program import ProgramError
from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, M0, SCC, Array, Case, random_image

WAVES = 8
VECTORS = {
    "s_set_gpr_idx_on s4, gpr_idx(SRC0)\nv_mov_b32_e32 v3, v5\ns_set_gpr_idx_off": (3, 5, 0, 1),
    "s_set_gpr_idx_on s4, gpr_idx(DST)\nv_mov_b32_e32 v3, v5\ns_set_gpr_idx_off": (3, 5, 1, 0),
    "s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)\nv_mov_b32_e32 v3, v5\ns_set_gpr_idx_off": (3, 5, 1, 1),
    "s_set_gpr_idx_on s5, 0x1\ns_set_gpr_idx_idx s4\nv_mov_b32_e32 v3, v5\ns_set_gpr_idx_off": (3, 5, 0, 1),
    "s_set_gpr_idx_on s4, gpr_idx(SRC0)\ns_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32_e32 v3, v5\ns_set_gpr_idx_off": (
        *(3, 5, 1, 0),
    ),
}
"""Texts; which register is written and which read, and which of both s4 is added to."""
SCALARS = {
    "s_movrels_b32 s3, s4": (3, 4, 1, 0, 1),
    "s_movrels_b64 s[2:3], s[4:5]": (2, 4, 2, 0, 1),
    "s_movreld_b32 s3, s4": (3, 4, 1, 1, 0),
    "s_movreld_b64 s[2:3], s[12:13]": (2, 12, 2, 1, 0),
}
"""Texts; which register is written and which read, how many, and which of both M0 is added to."""
BARRIER = (
    "global_store_dword v255, v2, s[88:89]\nds_gws_barrier v3 gds\ns_waitcnt vmcnt(0)\n"
    "global_load_dword v5, v255, s[88:89] offset:256\ns_waitcnt vmcnt(0)"
)
TEXTS = (*VECTORS, *SCALARS, BARRIER)


def image() -> tuple[Array, Array]:
    v, s = random_image(WAVES, 11)
    s[:, 4] = s[:, 5] & ~np.uint32(0xFF) | np.arange(WAVES)  # only the lowest byte counts
    s[:, M0] = np.arange(WAVES) & 6
    s[:, SCC + 1 :] = s[:, M0, None]
    return v, s


def test_numbers_of_vector_registers() -> None:
    v, s = image()
    for (text, (to, of, by_to, by_of)), outcome in zip(
        VECTORS.items(), harness.run([Case(text, v, s) for text in VECTORS]), strict=True
    ):
        right = v.copy()
        for w in range(WAVES):
            right[w, to + by_to * w] = v[w, of + by_of * w]
        np.testing.assert_array_equal(outcome.v, right, text)


def test_numbers_of_scalar_registers() -> None:
    v, s = image()
    for (text, (to, of, count, by_to, by_of)), outcome in zip(
        SCALARS.items(), harness.run([Case(text, v, s) for text in SCALARS]), strict=True
    ):
        right = s.copy()
        for w, by in enumerate(s[:, M0]):
            for n in range(count):
                right[w, to + n + by_to * by] = s[w, of + n + by_of * by]
        np.testing.assert_array_equal(outcome.s[:, :16], right[:, :16], text)


def test_a_register_that_is_not_allocated() -> None:
    v, s = image()
    s[:, 4] = 255
    outcomes = harness.run([Case(text, v, s) for text in list(VECTORS)[:2]])
    np.testing.assert_array_equal(outcomes[0].v[:, 3], v[:, 0])
    np.testing.assert_array_equal(outcomes[1].v, v)


def test_a_jump_amid_indexed_registers_is_not_read() -> None:
    v, s = image()
    with pytest.raises(ProgramError, match="s_branch where M0"):
        harness.run([Case("s_set_gpr_idx_on s4, gpr_idx(DST)\ns_branch L\nL:\ns_set_gpr_idx_off", v, s)])


def barrier() -> Case:
    """Each workgroup writes, waits for all, and reads what the next one wrote; the last one does neither."""
    v, s = random_image(WAVES, 12)
    v[:, 3] = WAVES - 1
    s[WAVES - 1, EXEC : EXEC + 2] = 0
    return Case(BARRIER, v, s, np.zeros((WAVES, 256), np.uint8))


@pytest.mark.parametrize("options", [{}, {"backwards": True}, {"threads": 2}], ids=str)
def test_all_workgroups_wait_for_each_other(options: dict[str, Any]) -> None:
    case = barrier()
    (outcome,) = harness.run([case], options=Options(**options), cooperative=True)
    np.testing.assert_array_equal(outcome.v[:-2, 5], case.v[1:-1, 2])


def test_waiting_in_a_launch_that_is_not_cooperative_is_found() -> None:
    _, result = harness.findings([barrier()])
    assert {(f.fault, f.statement.mnemonic) for f in result.findings} == {(Fault.TRAP, "ds_gws_barrier")}
