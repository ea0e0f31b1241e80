"""Only the last program masks."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    else:
        tl.store(out_ptr + i, tl.load(x_ptr + i))


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return x
