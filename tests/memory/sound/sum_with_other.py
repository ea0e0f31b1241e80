"""A sum over a padded block whose padding is zero."""

from tests.memory.common import over_rows, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


custom_kernel = over_rows(kernel)
data = random((20, 100), (20,))


def expected(x, out):
    return x.sum(1)
