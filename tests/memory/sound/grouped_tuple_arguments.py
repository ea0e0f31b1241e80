"""Tensors in a tuple."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(inputs, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(inputs[0] + i, mask=i < n)
    b = tl.load(inputs[1] + i, mask=i < n)
    tl.store(out_ptr + i, a + b, mask=i < n)


def custom_kernel(data):
    x, y, out = data
    kernel[(triton.cdiv(x.numel(), 128),)]((x, y), out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,), (1000,))


def expected(x, y, out):
    return x + y
