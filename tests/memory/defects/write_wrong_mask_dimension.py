"""Rows are masked by the number of columns."""

import torch
import triton
import triton.language as tl

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + i[:, None] * n + j[None, :], mask=(i < m)[:, None] & (j < n)[None, :], other=0.0)
    tl.store(out_ptr + i[:, None] * n + j[None, :], x, mask=(i < n)[:, None] & (j < n)[None, :])  # defect


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, BM=16, BN=32)
    return out


def data():
    return torch.randn(50, 70), torch.empty(50, 70)
