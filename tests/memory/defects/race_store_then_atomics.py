"""Every program clears the sum before it adds to it."""

import torch
import triton
import triton.language as tl

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, 0.0)  # defect
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))  # also


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1)
