"""e4m3fnuz operands and a scale for every row."""

from tests.memory.common import tl, torch, triton


@triton.jit
def kernel(a_ptr, b_ptr, scale_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + i[:, None] * k + at[None, :], mask=(i < m)[:, None])
        b = tl.load(b_ptr + at[:, None] * n + j[None, :], mask=(j < n)[None, :])
        acc += tl.dot(a, b)
    acc *= tl.load(scale_ptr + i, mask=i < m)[:, None]
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc.to(tl.bfloat16), mask=(i < m)[:, None] & (j < n)[None, :])


def custom_kernel(data):
    a, b, scale, c = data
    (m, k), n = a.shape, b.shape[1]
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, scale, c, m, n, k, B=32, BK=32)
    return c


def data():
    a, b = torch.randn(40, 64).to(torch.float8_e4m3fnuz), torch.randn(64, 48).to(torch.float8_e4m3fnuz)
    return a, b, torch.rand(40), torch.empty(40, 48, dtype=torch.bfloat16)


def expected(a, b, scale, c):
    return (a.float() @ b.float()) * scale[:, None]
