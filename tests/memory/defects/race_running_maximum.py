"""The maximum of all blocks is kept by load and store."""

import torch
import triton
import triton.language as tl

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = tl.max(tl.load(x_ptr + i, mask=i < n, other=-float("inf")), axis=0)
    best = tl.load(out_ptr)  # defect
    tl.store(out_ptr, tl.maximum(best, own))  # also


def custom_kernel(data):
    x, out = data
    out.fill_(-float("inf"))
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(1000), torch.empty(1)
