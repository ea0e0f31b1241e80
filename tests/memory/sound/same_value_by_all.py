"""Every program writes the same header."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, 7.0)
    x = tl.load(x_ptr + i, mask=(i > 0) & (i < n))
    tl.store(out_ptr + i, x, mask=(i > 0) & (i < n))


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)


def expected(x, out):
    return torch.cat([torch.tensor([7.0]), x[1:]])
