# type: ignore
# ruff: noqa: ANN001, ANN201, D103
"""The steps of the competition's winner, in Triton: A and B are transposed, then multiplied, k in SPLIT_K parts.

Written from its technical report and its table of launches (256 x 128 x 128 for all shapes). It is HIP; this is not its
code. With several parts each is stored in fp32, and a last kernel adds them.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {"SPLIT_K": 1, "BLOCK_M": 256, "BLOCK_N": 128, "num_warps": 8}
TRANSPOSED, ADDED = 64, 1024
"""Rows and columns of a transposed tile; elements of C that a program of the last kernel adds up."""


@triton.jit
def transpose_kernel(source, target, rows, columns, BLOCK: tl.constexpr):
    # source [columns][rows] -> target [rows][columns]
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(source + column[:, None] * rows + row[None, :])
    tl.store(target + row[:, None] * columns + column[None, :], tl.trans(tile))


@triton.jit
def gemm_kernel(a, b, a_scale, b_scale, c, m, n, k, own, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # own: k of one part
    part = tl.program_id(1)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    first = tl.program_id(0) % tiles_n * BLOCK_N
    columns = first + tl.arange(0, BLOCK_N)
    deep = part * own + tl.arange(0, 128)
    left = a + rows[:, None] * k + deep[None, :]
    right = b + (columns % n)[None, :] * k + deep[:, None]
    scale_columns = tl.cdiv(n, 128)
    scales = a_scale + part * (own // 128) * m + rows
    scale = b_scale + part * (own // 128) * scale_columns + first // 128
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(own // 128):
        product = tl.dot(tl.load(left), tl.load(right))
        total += product * (tl.load(scales) * tl.load(scale))[:, None]
        left += 128
        right += 128
        scales += m
        scale += scale_columns
    places = part * m * n + rows[:, None] * n + columns[None, :]
    tl.store(c + places, total.to(c.dtype.element_ty), mask=(columns < n)[None, :])


@triton.jit
def add_kernel(parts, c, elements, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(SPLIT_K):
        total += tl.load(parts + part * elements + places)
    tl.store(c + places, total.to(c.dtype.element_ty))


def transposed(matrix):
    rows, columns = matrix.shape
    target = torch.empty((rows, columns), dtype=matrix.dtype, device=matrix.device)
    transpose_kernel[(rows // TRANSPOSED, columns // TRANSPOSED)](matrix, target, rows, columns, BLOCK=TRANSPOSED)
    return target


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    options = dict(TUNABLES)
    split = options.pop("SPLIT_K")
    grid = (triton.cdiv(m, options["BLOCK_M"]) * triton.cdiv(n, options["BLOCK_N"]), split)
    parts = torch.empty((split, m, n), dtype=torch.float32, device=a.device) if split > 1 else c
    gemm_kernel[grid](transposed(a), transposed(b), a_scale, b_scale, parts, m, n, k, k // split, **options)
    if split > 1:
        add_kernel[(m * n // ADDED,)](parts, c, m * n, SPLIT_K=split, BLOCK=ADDED)
    return c
