"""Bank conflicts of LDS accesses, from address arithmetic as LLVM writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.isa.lds_conflicts import Wave
from kernel_scientist.gpu.isa.tally import CONFLICT
from kernel_scientist.gpu.toolchains import hip

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))

HIP = """
#include <hip/hip_runtime.h>
extern "C" __global__ void column(const float *in, float *out, int n) {
    __shared__ float tile[64 * STRIDE];
    for (int i = 0; i < n; ++i) {
        for (int j = threadIdx.x; j < 64 * STRIDE; j += 64) tile[j] = in[i * 64 * STRIDE + j];
        __syncthreads();
        out[i * 64 + threadIdx.x] = tile[threadIdx.x * STRIDE + 5];
        __syncthreads();
    }
}
"""


def cycles(*lines: str) -> int:
    """Return the cycles that conflicts add to the last of these instructions."""
    wave = Wave()
    return [wave.conflicts(*line.split(" ", 1)) for line in lines][-1]


@pytest.mark.parametrize(
    "stride, expected",
    [(4, 0), (8, 2), (64, 30), (128, 62), (132, 0), (260, 0), (0, 0)],
    ids=["rows", "every second word", "16 lanes a bank", "one bank", "padded", "padded twice", "broadcast"],
)
def test_a_read_of_32_bits_at_a_stride(stride: int, expected: int) -> None:
    assert cycles(f"v_mul_u32_u24_e32 v1, {stride}, v0", "ds_read_b32 v2, v1 offset:512") == expected


@pytest.mark.parametrize("bits", [64, 128])
def test_wide_accesses_to_consecutive_addresses_are_free(bits: int) -> None:
    shift = (bits // 8).bit_length() - 1
    assert cycles(f"v_lshlrev_b32_e32 v1, {shift}, v0", f"ds_write_b{bits} v1, v[2:{1 + bits // 32}]") == 0


@pytest.mark.parametrize("stride, expected", [(128, 8 * 7), (144, 0), (64, 8 * 3), (80, 0)])
def test_rows_of_a_32_row_fragment(stride: int, expected: int) -> None:
    """The table of knowledge/lds-banks.md: 16 bytes of row `lane % 32` at chunk `lane / 32`."""
    row = ["v_and_b32_e32 v1, 31, v0", f"v_mul_u32_u24_e32 v1, {stride}, v1", "v_lshrrev_b32_e32 v2, 5, v0"]
    assert cycles(*row, "v_lshl_add_u32 v1, v2, 4, v1", "ds_read_b128 v[4:7], v1") == expected


def test_both_accesses_of_a_pair_count() -> None:
    assert cycles("v_lshlrev_b32_e32 v1, 7, v0", "ds_read2_b32 v[2:3], v1 offset1:1") == 2 * 62


def test_a_swizzle_removes_the_conflicts() -> None:
    rows = ["v_and_b32_e32 v1, 31, v0", "v_lshlrev_b32_e32 v2, 7, v0", "v_lshlrev_b32_e32 v3, 2, v1"]
    assert cycles(*rows, "ds_read_b32 v4, v2") == 62
    assert cycles(*rows, "v_xor_b32_e32 v2, v2, v3", "ds_read_b32 v4, v2") == 0


def test_an_unknown_scalar_changes_nothing_and_an_unknown_vector_costs_nothing() -> None:
    assert cycles("v_lshlrev_b32_e32 v1, 7, v0", "v_add_u32_e32 v1, s7, v1", "ds_read_b32 v2, v1") == 62
    assert cycles("global_load_dword v1, v[4:5], off", "ds_read_b32 v2, v1") == 0


@given(st.lists(st.text("vsd[:]0123456789_, x-breadwit", max_size=40), max_size=8))
def test_any_text_is_read(lines: list[str]) -> None:
    wave = Wave()
    assert all(wave.conflicts(*([*line.split(" ", 1), ""])[:2]) >= 0 for line in lines)


@needs_hip
@pytest.mark.parametrize("stride, expected", [(32, 62), (33, 0)])
def test_a_column_of_a_tile_in_compiled_code(stride: int, expected: int) -> None:
    compiled = hip.compile_hip(HIP.replace("STRIDE", str(stride)), "gfx942", [])
    assert compiled.ok, compiled.log
    (code,) = assembly.read(compiled.assembly)
    assert sum(level.get(CONFLICT, 0) for level in code.mix[1:]) == expected
