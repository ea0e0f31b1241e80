"""A block of pointers that is transposed; the mask has forgotten the rows."""

import torch
import triton
import triton.language as tl

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(tl.trans(x_ptr + i[:, None] * n + j[None, :]), mask=(j < n)[:, None], other=0.0)  # defect
    tl.store(out_ptr + j[:, None] * m + i[None, :], x, mask=(j < n)[:, None] & (i < m)[None, :])


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, BM=16, BN=32)
    return out


def data():
    return torch.randn(50, 70), torch.empty(70, 50)
