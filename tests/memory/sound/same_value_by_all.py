"""Every program writes the same header."""

from tests.memory.common import over_elements, random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, 7.0)
    x = tl.load(x_ptr + i, mask=(i > 0) & (i < n))
    tl.store(out_ptr + i, x, mask=(i > 0) & (i < n))


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return torch.cat([torch.tensor([7.0]), x[1:]])
