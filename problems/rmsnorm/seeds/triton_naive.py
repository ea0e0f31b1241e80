"""RMS normalisation: one program per row, two loops over its columns in blocks of 1024.

Simple: the first loop adds up the squares, the second reads the row again and writes it scaled. Nothing tuned.
"""

import torch
import triton
import triton.language as tl

EPS = 1e-6
BLOCK = 1024

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        x = tl.load(x_ptr + base + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)

    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        x = tl.load(x_ptr + base + offsets, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
        tl.store(out_ptr + base + offsets, (x * scale * weight).to(tl.bfloat16), mask=mask)


def custom_kernel(data: Data) -> torch.Tensor:
    """Write x / sqrt(mean(x^2) + EPS) * weight into `out` and return it."""
    x, weight, out = data
    rows, cols = x.shape
    rmsnorm_kernel[(rows,)](x, weight, out, cols, EPS, BLOCK=BLOCK)
    return out
