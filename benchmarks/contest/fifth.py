# type: ignore
# ruff: noqa: ANN001, ANN201, D103
"""The steps of luongthecong123's entry, in Triton: tiles of C by 16 waves, operands loaded byte by byte.

Written from its README; it is HIP, this is not its code. A tile of A is [BLOCK_K][BLOCK_M] in memory.
"""

import triton
import triton.language as tl

TUNABLES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 16, "num_stages": 1, "matrix_instr_nonkdim": 32}


@triton.jit(do_not_specialize=["m", "n"])  # so that the compiler knows of no alignment and loads single bytes
def gemm_kernel(
    a, b, a_scale, b_scale, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    first = tl.program_id(0) * BLOCK_N
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = first + tl.arange(0, BLOCK_N)
    deep = tl.arange(0, BLOCK_K)
    left = a + deep[None, :] * m + rows[:, None]
    right = b + deep[:, None] * n + columns[None, :]
    inside = columns < n
    scales, scale, scale_columns = a_scale + rows, b_scale + first // 128, tl.cdiv(n, 128)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(k // 128):
        product = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for _step in tl.static_range(128 // BLOCK_K):
            product = tl.dot(tl.load(left), tl.load(right, mask=inside[None, :]), acc=product)
            left += BLOCK_K * m
            right += BLOCK_K * n
        total += product * (tl.load(scales) * tl.load(scale))[:, None]
        scales += m
        scale += scale_columns
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16), mask=inside[None, :])


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    grid = (triton.cdiv(n, TUNABLES["BLOCK_N"]), m // TUNABLES["BLOCK_M"])
    gemm_kernel[grid](a, b, a_scale, b_scale, c, m, n, k, **TUNABLES)
    return c
