"""A difference with the left neighbour, which the first element has not."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i - 1, mask=i < n, other=0.0)  # defect
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x - left, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))
