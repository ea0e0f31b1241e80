"""Neighbours that lie in other blocks are read by both; the ends are masked."""

from tests.memory.common import over_elements, random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i - 1, mask=(i > 0) & (i < n), other=0.0)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out_ptr + i, left + right, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return torch.nn.functional.pad(x, (1, 0))[:-1] + torch.nn.functional.pad(x, (0, 1))[1:]
