"""Overlapping blocks write the same values where they overlap."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 8) + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 120),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)


def expected(x, out):
    return x * 2
