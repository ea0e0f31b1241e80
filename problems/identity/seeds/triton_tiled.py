"""Copy a vector: each program copies CHUNKS blocks that follow one another, all loads issued before the stores.

Tiled: a program owns CHUNKS * BLOCK elements. The block, the chunks and the warps are declared tunables.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {"BLOCK": 2048, "CHUNKS": 1, "num_warps": 4}
CHOICES = {"BLOCK": [512, 1024, 2048, 4096], "CHUNKS": [1, 2, 4], "num_warps": [2, 4, 8]}


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    # A [CHUNKS, BLOCK] tile over consecutive memory: one load and one store, so all reads are in flight together.
    start = tl.program_id(0) * (CHUNKS * BLOCK)
    offsets = start + tl.arange(0, CHUNKS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = offsets < size
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def custom_kernel(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Write `x` into `out` and return it."""
    x, out = data
    size = x.numel()
    grid = (triton.cdiv(size, TUNABLES["BLOCK"] * TUNABLES["CHUNKS"]),)
    copy_kernel[grid](x, out, size, BLOCK=TUNABLES["BLOCK"], CHUNKS=TUNABLES["CHUNKS"], num_warps=TUNABLES["num_warps"])
    return out
