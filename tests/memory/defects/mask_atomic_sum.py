"""Padding is added atomically."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # defect
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


custom_kernel = over_elements(kernel, fill=0)
data = random((1000,), (1,))
