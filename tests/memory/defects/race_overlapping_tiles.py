"""Blocks are 128 wide and lie 120 apart, and each stores its own sum."""

import torch
import triton
import triton.language as tl

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 8) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x + tl.sum(x, axis=0), mask=i < n)  # defect


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 120),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)
