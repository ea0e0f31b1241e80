"""Block-scaled fp8 GEMM that dispatches by shape: small problems take one path, large ones another, chosen by WAY.

The test replaces WAY, and puts errors in by replacing other text.
"""

import torch
import triton
import triton.language as tl

WAY = "split"
SPLIT, BLOCK = 4, 64
TILES_PER_PROGRAM = 2


@triton.jit
def product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, first, last, tile_m, tile_n, BLOCK: tl.constexpr):
    """Return a tile's sum over blocks `first` to `last` of k."""
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)
    ks = tl.arange(0, 128)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for block in range(first, last):
        k = block * 128 + ks
        a = tl.load(a_ptr + k[None, :] * m + rows[:, None], mask=rows[:, None] < m, other=0.0)
        b = tl.load(b_ptr + k[:, None] * n + cols[None, :], mask=cols[None, :] < n, other=0.0)
        sa = tl.load(sa_ptr + block * m + rows, mask=rows < m, other=0.0)
        sb = tl.load(sb_ptr + block * tl.cdiv(n, 128) + tile_n * BLOCK // 128)
        acc += tl.dot(a, b) * (sa * sb)[:, None]
    return acc


@triton.jit
def whole(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, m, n, k, offset_n, BLOCK: tl.constexpr):
    """One tile per program, all of k."""
    tile_m, tile_n = tl.program_id(0), tl.program_id(1) + offset_n
    acc = product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, 0, k // 128, tile_m, tile_n, BLOCK)
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(c_ptr + rows * n + cols, acc.to(tl.bfloat16), mask=(rows < m) & (cols < n))


@triton.jit
def persistent(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    """Every program computes several tiles."""
    tiles_n = tl.cdiv(n, BLOCK)
    for tile in range(tl.program_id(0), tl.cdiv(m, BLOCK) * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = tile // tiles_n, tile % tiles_n
        acc = product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, 0, k // 128, tile_m, tile_n, BLOCK)
        rows = tile_m * BLOCK + tl.arange(0, BLOCK)[:, None]
        cols = tile_n * BLOCK + tl.arange(0, BLOCK)[None, :]
        tl.store(c_ptr + rows * n + cols, acc.to(tl.bfloat16), mask=(rows < m) & (cols < n))


@triton.jit
def parts(a_ptr, b_ptr, sa_ptr, sb_ptr, parts_ptr, m, n, k, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    """One part of k per program, stored for `summed`."""
    tile_m, tile_n, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    blocks = k // 128
    first, last = blocks * part // SPLIT, blocks * (part + 1) // SPLIT
    acc = product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, first, last, tile_m, tile_n, BLOCK)
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(parts_ptr + part * m * n + rows * n + cols, acc, mask=(rows < m) & (cols < n))


@triton.jit
def summed(parts_ptr, c_ptr, size, WIDTH: tl.constexpr, SPLIT: tl.constexpr):
    """Add the parts."""
    where = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts_ptr + part * size + where, mask=where < size, other=0.0)
    tl.store(c_ptr + where, total.to(tl.bfloat16), mask=where < size)


@triton.jit
def added(a_ptr, b_ptr, sa_ptr, sb_ptr, sum_ptr, m, n, k, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    """One part of k per program, added atomically."""
    tile_m, tile_n, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    blocks = k // 128
    first, last = blocks * part // SPLIT, blocks * (part + 1) // SPLIT
    acc = product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, first, last, tile_m, tile_n, BLOCK)
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.atomic_add(sum_ptr + rows * n + cols, acc, mask=(rows < m) & (cols < n), sem="relaxed")


@triton.jit
def locked(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, parts_ptr, locks_ptr, m, n, k, BLOCK: tl.constexpr, SPLIT: tl.constexpr
):
    """One part of k per program; the last one to arrive adds all parts of its tile."""
    tile_m, tile_n, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    blocks = k // 128
    first, last = blocks * part // SPLIT, blocks * (part + 1) // SPLIT
    acc = product(a_ptr, b_ptr, sa_ptr, sb_ptr, m, n, first, last, tile_m, tile_n, BLOCK)
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < m) & (cols < n)
    tl.store(parts_ptr + part * m * n + rows * n + cols, acc, mask=inside)
    tl.debug_barrier()
    arrived = tl.atomic_add(locks_ptr + tile_m * tl.num_programs(1) + tile_n, 1, sem="acq_rel")
    if arrived == SPLIT - 1:
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for other in range(SPLIT):
            total += tl.load(parts_ptr + other * m * n + rows * n + cols, mask=inside, other=0.0)
        tl.store(c_ptr + rows * n + cols, total.to(tl.bfloat16), mask=inside)


@triton.jit
def turned(from_ptr, to_ptr, rows, cols, BLOCK: tl.constexpr):
    """Copy a matrix [rows][cols] to [cols][rows]."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < cols)
    value = tl.load(from_ptr + i[:, None] * cols + j[None, :], mask=inside, other=0)
    tl.store(to_ptr + j[None, :] * rows + i[:, None], value, mask=inside)


@triton.jit
def from_rows(at_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    """One tile per program, with A stored [m][k]."""
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)
    ks = tl.arange(0, 128)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for block in range(k // 128):
        kk = block * 128 + ks
        a = tl.load(at_ptr + rows[:, None] * k + kk[None, :], mask=rows[:, None] < m, other=0.0)
        b = tl.load(b_ptr + kk[:, None] * n + cols[None, :], mask=cols[None, :] < n, other=0.0)
        sa = tl.load(sa_ptr + block * m + rows, mask=rows < m, other=0.0)
        sb = tl.load(sb_ptr + block * tl.cdiv(n, 128) + tile_n * BLOCK // 128)
        acc += tl.dot(a, b) * (sa * sb)[:, None]
    tl.store(
        c_ptr + rows[:, None] * n + cols[None, :], acc.to(tl.bfloat16), mask=(rows[:, None] < m) & (cols[None, :] < n)
    )


def custom_kernel(data):
    """Write (a * scales) @ (b * scales).T into `c` and return it."""
    a, b, sa, sb, c = data
    m, k = a.shape
    n = b.shape[0]
    tiles = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
    if k <= 640 or WAY == "whole":
        whole[tiles](a, b, sa, sb, c, m, n, k, 0, BLOCK=BLOCK)
    elif WAY == "halves":
        half = tiles[1] // 2
        whole[(tiles[0], half)](a, b, sa, sb, c, m, n, k, 0, BLOCK=BLOCK, num_warps=4)
        whole[(tiles[0], tiles[1] - half)](a, b, sa, sb, c, m, n, k, half, BLOCK=BLOCK, num_warps=8)
    elif WAY == "persistent":
        persistent[(triton.cdiv(tiles[0] * tiles[1], TILES_PER_PROGRAM),)](a, b, sa, sb, c, m, n, k, BLOCK=BLOCK)
    elif WAY == "split":
        scratch = torch.empty((SPLIT, m, n), dtype=torch.float32, device=a.device)
        parts[(*tiles, SPLIT)](a, b, sa, sb, scratch, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)
        summed[(triton.cdiv(m * n, 1024),)](scratch, c, m * n, WIDTH=1024, SPLIT=SPLIT)
    elif WAY == "torch":
        scratch = torch.empty((SPLIT, m, n), dtype=torch.float32, device=a.device)
        parts[(*tiles, SPLIT)](a, b, sa, sb, scratch, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)
        c.copy_(scratch.sum(0))
    elif WAY == "atomic":
        scratch = torch.zeros((m, n), dtype=torch.float32, device=a.device)
        added[(*tiles, SPLIT)](a, b, sa, sb, scratch, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)
        c.copy_(scratch)
    elif WAY == "locked":
        scratch = torch.empty((SPLIT, m, n), dtype=torch.float32, device=a.device)
        locks = torch.zeros(tiles, dtype=torch.int32, device=a.device)
        locked[(*tiles, SPLIT)](a, b, sa, sb, c, scratch, locks, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)
    elif WAY == "turned":
        at = torch.empty((m, k), dtype=a.dtype, device=a.device)
        turned[(triton.cdiv(k, 128), triton.cdiv(m, 128))](a.view(torch.uint8), at.view(torch.uint8), k, m, BLOCK=128)
        from_rows[tiles](at, b, sa, sb, c, m, n, k, BLOCK=BLOCK)
    elif WAY == "contiguous":
        from_rows[tiles](a.contiguous(), b, sa, sb, c, m, n, k, BLOCK=BLOCK)
    return c
