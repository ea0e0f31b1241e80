"""A descriptor that promises more rows than there are."""

import torch
import triton
import triton.language as tl

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[m + BM, n], strides=[n, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    where = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    value = x.load(where)  # defect
    out.store(where, value)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, BM=16, BN=32)
    return out


def data():
    return torch.randn(50, 64), torch.empty(50, 64)
