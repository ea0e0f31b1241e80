"""Rows are sorted with a padding of infinities."""

from tests.memory.common import over_rows, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=float("inf"))
    tl.store(out_ptr + row * n + j, tl.sort(x), mask=j < n)


custom_kernel = over_rows(kernel, block=64)
data = random((4, 50), (4, 50))


def expected(x, out):
    return x.sort(1).values
