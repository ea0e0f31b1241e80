"""A scale is loaded under the rows mask only for the first of two blocks of rows."""

from tests.memory.common import random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.arange(0, BN)
    scale = tl.load(scale_ptr + i, mask=i < m // 2)  # defect
    inside = (i < m)[:, None] & (j < n)[None, :]
    x = tl.load(x_ptr + i[:, None] * n + j[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + i[:, None] * n + j[None, :], x * scale[:, None], mask=inside)


def custom_kernel(data):
    x, scale, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16),)](x, scale, out, m, n, BM=16, BN=64)
    return out


data = random((50, 60), (50,), (50, 60))
