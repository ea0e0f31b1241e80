"""A difference with the left neighbour, which the first element has not."""

import torch
import triton
import triton.language as tl

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i - 1, mask=i < n, other=0.0)  # defect
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x - left, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)
