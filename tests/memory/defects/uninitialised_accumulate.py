"""Adds to an output that nobody cleared."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "uninitialised read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    old = tl.load(out_ptr + i, mask=i < n, other=0.0)  # defect
    tl.store(out_ptr + i, old + x, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))
