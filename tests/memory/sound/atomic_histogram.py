"""A histogram by masked atomics."""

from tests.memory.common import over_elements, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_add(out_ptr + x, 1, mask=i < n)


custom_kernel = over_elements(kernel, fill=0)


def data():
    return torch.randint(0, 16, (1000,), dtype=torch.int32), torch.empty(16, dtype=torch.int32)


def expected(x, out):
    return torch.bincount(x, minlength=16)
