"""A sum over a padded block; the padding is whatever it is."""

import torch
import triton
import triton.language as tl

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n)  # defect
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def custom_kernel(data):
    x, out = data
    kernel[(x.shape[0],)](x, out, x.shape[1], BN=128)
    return out


def data():
    return torch.randn(20, 100), torch.empty(20)
