"""The maximum of all blocks by atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    tl.atomic_max(out_ptr, tl.max(x, axis=0))


def custom_kernel(data):
    x, out = data
    out.fill_(-float("inf"))
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1)


def expected(x, out):
    return x.max().view(1)
