"""A shift to the left that keeps the first element."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i - 1, x, mask=i < n)  # defect


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))
