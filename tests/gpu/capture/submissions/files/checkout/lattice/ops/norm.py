"""Modules of the same package, by relative and absolute imports; the package itself cannot be imported here."""

import torch
from an_extension_that_nobody_has import register

from lattice.compat import tl, triton
from lattice.settings import WARPS, warps

from .reduce import mean_square


@triton.jit
def norm_kernel(X, W, Y, RSTD, stride_x, n, eps, BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    X += row * stride_x
    x = tl.load(X + i, mask=i < n, other=0.0).to(tl.float32)
    r = tl.rsqrt(mean_square(x, n) + eps)
    tl.store(RSTD + row, r)
    y = x * r
    if HAS_WEIGHT:
        y *= tl.load(W + i, mask=i < n, other=0.0)
    tl.store(Y + row * stride_x + i, y, mask=i < n)


@register("lattice::normed")
def normed(x: torch.Tensor, w: torch.Tensor | None, eps: float = 1e-6):
    rows, n = x.shape
    y, rstd = torch.empty_like(x), torch.empty(rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(n)
    norm_kernel[(rows,)](x, w, y, rstd, x.stride(0), n, eps, block, w is not None, num_warps=warps() or WARPS)
    return y
