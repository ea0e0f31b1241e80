"""Split-K by atomics into a workspace of zeros."""

from tests.memory.common import tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, k, n, BN: tl.constexpr, BK: tl.constexpr):
    j = tl.arange(0, BN)
    at = tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
    tl.atomic_add(out_ptr + j, tl.sum(x, axis=0), mask=j < n)


def custom_kernel(data):
    x, out = data
    k, n = x.shape
    workspace = torch.zeros(n, dtype=torch.float32)
    kernel[(triton.cdiv(k, 16),)](x, workspace, k, n, BN=64, BK=16)
    return out.copy_(workspace)


def data():
    return torch.randn(100, 50), torch.empty(50, dtype=torch.bfloat16)


def expected(x, out):
    return x.sum(0)
