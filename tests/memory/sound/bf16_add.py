"""bf16 in, bf16 out."""

from tests.memory.common import over_elements, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + x * 0.5, mask=i < n)


custom_kernel = over_elements(kernel)


def data():
    return torch.randn(1000).to(torch.bfloat16), torch.empty(1000, dtype=torch.bfloat16)


def expected(x, out):
    return x * 1.5
