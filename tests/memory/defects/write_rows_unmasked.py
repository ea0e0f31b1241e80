"""Row sums: the rows past the last have sums too."""

from tests.memory.common import random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.arange(0, BN)
    x = tl.load(x_ptr + i[:, None] * n + j[None, :], mask=(i < m)[:, None] & (j < n)[None, :], other=0.0)
    tl.store(out_ptr + i, tl.sum(x, axis=1))  # defect


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16),)](x, out, m, n, BM=16, BN=128)
    return out


data = random((50, 70), (50,))
