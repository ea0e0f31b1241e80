"""Every split stores its part in a place of its own of an empty workspace; torch sums them."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, work_ptr, k, n, BN: tl.constexpr, BK: tl.constexpr):
    j = tl.arange(0, BN)
    at = tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
    tl.store(work_ptr + tl.program_id(0) * BN + j, tl.sum(x, axis=0), mask=j < n)


def custom_kernel(data):
    x, out = data
    k, n = x.shape
    splits = triton.cdiv(k, 16)
    work = torch.empty((splits, 64), dtype=torch.float32)
    kernel[(splits,)](x, work, k, n, BN=64, BK=16)
    out.copy_(work.sum(dim=0)[:n])
    return out


data = random((100, 50), (50,))


def expected(x, out):
    return x.sum(0)
