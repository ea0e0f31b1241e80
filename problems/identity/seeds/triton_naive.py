"""Copy a vector: one block of 1024 elements per program, one masked load and one masked store, nothing tuned."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def custom_kernel(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Write `x` into `out` and return it."""
    x, out = data
    size = x.numel()
    copy_kernel[(triton.cdiv(size, BLOCK),)](x, out, size, BLOCK=BLOCK)
    return out
