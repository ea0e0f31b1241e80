"""A sum over a padded block; the padding is whatever it is."""

from tests.memory.common import over_rows, random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n)  # defect
    tl.store(out_ptr + row, tl.sum(x, axis=0))


custom_kernel = over_rows(kernel)
data = random((20, 100), (20,))
