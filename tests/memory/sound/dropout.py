"""Random numbers by counters: integers that wrap around."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    keep = tl.rand(seed, i) > 2.0
    tl.store(out_ptr + i, tl.where(keep, x / 0.5, x), mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), 123, BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x
