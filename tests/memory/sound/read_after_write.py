"""A program reads what it wrote itself."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
    tl.debug_barrier()
    again = tl.load(out_ptr + i, mask=i < n)
    tl.store(out_ptr + i, again + 1, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return x * 2 + 1
