"""A masked load without `other`, stored under the same mask."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return x
