"""Four programs share all blocks."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), PROGRAMS):
        i = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(4,)](x, out, x.numel(), PROGRAMS=4, BLOCK=64)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x + 1
