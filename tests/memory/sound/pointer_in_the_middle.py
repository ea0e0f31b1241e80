"""A view that starts in the middle of its storage; the kernel also reads before it."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(x_ptr + i, mask=i < n)
    before = tl.load(x_ptr + i - 1, mask=i < n)
    tl.store(out_ptr + i, here - before, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(out.numel(), 128),)](x[1:], out, out.numel(), BLOCK=128)
    return out


data = random((1000,), (999,))


def expected(x, out):
    return x[1:] - x[:-1]
