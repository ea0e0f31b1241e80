"""Overlapping blocks write the same values where they overlap."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 8) + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


custom_kernel = over_elements(kernel, block=120)
data = random((1000,), (1000,))


def expected(x, out):
    return x * 2
