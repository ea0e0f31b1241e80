"""Tensor descriptors, one made by the host: they check every bound themselves."""

from tests.memory.common import random, tl, triton
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(a, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * B, tl.program_id(1) * B
    b = tl.make_tensor_descriptor(b_ptr, shape=[k, n], strides=[n, 1], block_shape=[BK, B])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[B, B])
    acc = tl.zeros((B, B), dtype=tl.float32)
    for at in range(0, k, BK):
        acc += tl.dot(a.load([row, at]), b.load([at, col]))
    c.store([row, col], acc)


def custom_kernel(data):
    a, b, c = data
    (m, k), n = a.shape, b.shape[1]
    left = TensorDescriptor.from_tensor(a, [32, 32])
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](left, b, c, m, n, k, B=32, BK=32)
    return c


data = random((72, 80), (80, 104), (72, 104))


def expected(a, b, c):
    return a @ b
