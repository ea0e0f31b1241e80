"""Indices are clamped to n instead of n - 1."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.minimum(i, n))  # defect
    tl.store(out_ptr + i, x, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))
