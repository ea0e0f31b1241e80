"""No mask, and none needed: the size divides."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def custom_kernel(data):
    x, out = data
    kernel[(x.numel() // 128,)](x, out, x.numel(), BLOCK=128)
    return out


data = random((1024,), (1024,))


def expected(x, out):
    return x
