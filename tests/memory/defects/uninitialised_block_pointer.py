"""alpha * x + beta * out, and out was never written."""

import torch
import triton
import triton.language as tl

KIND = "uninitialised read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    value = tl.load(x, boundary_check=(0, 1), padding_option="zero")
    old = tl.load(out, boundary_check=(0, 1), padding_option="zero")  # defect
    tl.store(out, value + 0.5 * old, boundary_check=(0, 1))


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, BM=16, BN=32)
    return out


def data():
    return torch.randn(50, 70), torch.empty(50, 70)
