"""A condition on an undefined lane counts only where the mask lets it."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x, mask=(i < n) & (x > 0))


custom_kernel = over_elements(kernel, fill=0)
data = random((1000,), (1000,))


def expected(x, out):
    return x.clamp(min=0)
