"""The padding has no `other`, but tl.where puts something in its place."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n)
    x = tl.where(j < n, x, -float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + j, e / tl.sum(e, axis=0), mask=j < n)


def custom_kernel(data):
    x, out = data
    kernel[(x.shape[0],)](x, out, x.shape[1], BN=128)
    return out


def data():
    return torch.randn(20, 100), torch.empty(20, 100)


def expected(x, out):
    return x.softmax(1)
