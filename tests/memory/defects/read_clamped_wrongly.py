"""Indices are clamped to n instead of n - 1."""

import torch
import triton
import triton.language as tl

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.minimum(i, n))  # defect
    tl.store(out_ptr + i, x, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)
