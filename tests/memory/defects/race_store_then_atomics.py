"""Every program clears the sum before it adds to it."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, 0.0)  # defect
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))  # also


custom_kernel = over_elements(kernel)
data = random((1000,), (1,))
