"""C = A B^T in the type of A and B (bf16 or fp8), summed in fp32: tiles in groups of rows, k split SPLIT_K ways.

With SPLIT_K above 1 the parts are stored in fp32 and a second kernel adds them. BLOCK_K * SPLIT_K divides k.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "SPLIT_K": 1, "num_warps": 4, "num_stages": 2}
ADDED = 1024
"""Elements of C that a program of the second kernel adds up."""


@triton.jit
def gemm_kernel(
    a, b, c, m, n, k, own, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr
):
    # own: k of one part; an argument, so that the compiler learns that 16 divides it
    number, part = tl.program_id(0), tl.program_id(1)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first = number // (GROUP_M * tiles_n) * GROUP_M
    group = tl.minimum(tiles_m - first, GROUP_M)
    inner = number % (GROUP_M * tiles_n)
    rows = (first + inner % group) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = inner // group * BLOCK_N + tl.arange(0, BLOCK_N)
    deep = part * own + tl.arange(0, BLOCK_K)
    left = a + (rows % m)[:, None] * k + deep[None, :]  # what lies beyond m is computed and not stored
    right = b + (columns % n)[None, :] * k + deep[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(own // BLOCK_K):
        total = tl.dot(tl.load(left), tl.load(right), acc=total)
        left += BLOCK_K
        right += BLOCK_K
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    places = part * m * n + rows[:, None] * n + columns[None, :]
    tl.store(c + places, total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def add_kernel(parts, c, elements, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(SPLIT_K):
        total += tl.load(parts + part * elements + places, mask=places < elements, other=0.0)
    tl.store(c + places, total.to(c.dtype.element_ty), mask=places < elements)


def custom_kernel(data):
    a, b, c = data
    (m, k), n = a.shape, b.shape[0]
    options = dict(TUNABLES)
    split = options.pop("SPLIT_K")
    grid = (triton.cdiv(m, options["BLOCK_M"]) * triton.cdiv(n, options["BLOCK_N"]), split)
    parts = torch.empty((split, m, n), dtype=torch.float32, device=a.device) if split > 1 else c
    gemm_kernel[grid](a, b, parts, m, n, k, k // split, **options)
    if split > 1:
        add_kernel[(triton.cdiv(m * n, ADDED),)](parts, c, m * n, SPLIT_K=split, BLOCK=ADDED)
    return c
