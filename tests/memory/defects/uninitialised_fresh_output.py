"""The output is allocated with empty_like and then added to."""

import torch
import triton
import triton.language as tl

KIND = "uninitialised read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x += tl.load(out_ptr + i, mask=i < n, other=0.0)  # defect
    tl.store(out_ptr + i, x, mask=i < n)


def custom_kernel(data):
    x = data[0]
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1000)
