"""The maximum of all blocks by atomics."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    tl.atomic_max(out_ptr, tl.max(x, axis=0))


custom_kernel = over_elements(kernel, fill=-float("inf"))
data = random((1000,), (1,))


def expected(x, out):
    return x.max().view(1)
