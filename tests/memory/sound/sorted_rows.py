"""Rows are sorted with a padding of infinities."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=float("inf"))
    tl.store(out_ptr + row * n + j, tl.sort(x), mask=j < n)


def custom_kernel(data):
    x, out = data
    kernel[(x.shape[0],)](x, out, x.shape[1], BN=64)
    return out


def data():
    return torch.randn(4, 50), torch.empty(4, 50)


def expected(x, out):
    return x.sort(1).values
