"""A transposed view, addressed by its strides."""

from tests.memory.common import tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, m, n, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (i < m)[:, None] & (j < n)[None, :]
    x = tl.load(x_ptr + i[:, None] * sm + j[None, :] * sn, mask=inside)
    tl.store(out_ptr + i[:, None] * n + j[None, :], x, mask=inside)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, *x.stride(), BM=16, BN=32)
    return out


def data():
    return torch.randn(70, 50).T, torch.empty(50, 70)


def expected(x, out):
    return x
