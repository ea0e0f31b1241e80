"""The maximum of all blocks is kept by load and store."""

from tests.memory.common import over_elements, random, tl, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = tl.max(tl.load(x_ptr + i, mask=i < n, other=-float("inf")), axis=0)
    best = tl.load(out_ptr)  # defect
    tl.store(out_ptr, tl.maximum(best, own))  # also


custom_kernel = over_elements(kernel, fill=-float("inf"))
data = random((1000,), (1,))
