"""Column means over a padded number of rows."""

from tests.memory.common import random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + i[:, None] * n + j[None, :], mask=(i < m)[:, None] & (j < n)[None, :])  # defect
    tl.store(out_ptr + j, tl.sum(x, axis=0) / m, mask=j < n)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(n, 32),)](x, out, m, n, BM=64, BN=32)
    return out


data = random((50, 70), (70,))
