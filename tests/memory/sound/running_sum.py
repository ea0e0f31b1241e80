"""A padded running sum; sort and flip besides."""

from tests.memory.common import over_rows, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    tl.store(out_ptr + row * n + j, tl.cumsum(x, axis=0), mask=j < n)


custom_kernel = over_rows(kernel)
data = random((4, 100), (4, 100))


def expected(x, out):
    return x.cumsum(1)
