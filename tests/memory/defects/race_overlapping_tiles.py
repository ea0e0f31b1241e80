"""Blocks are 128 wide and lie 120 apart, and each stores its own sum."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 8) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x + tl.sum(x, axis=0), mask=i < n)  # defect


custom_kernel = over_elements(kernel, block=120)
data = random((1000,), (1000,))
