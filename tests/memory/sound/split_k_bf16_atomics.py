"""Split-K by bf16 atomics straight into the output."""

from tests.memory.common import over_k, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, k, n, BN: tl.constexpr, BK: tl.constexpr):
    j = tl.arange(0, BN)
    at = tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
    tl.atomic_add(out_ptr + j, tl.sum(x, axis=0).to(tl.bfloat16), mask=j < n)


custom_kernel = over_k(kernel, fill=0, block=32)


def data():
    return torch.randint(-2, 3, (100, 50)).float(), torch.empty(50, dtype=torch.bfloat16)


def expected(x, out):
    return x.sum(0)
