"""Rows and columns outside c have no `other`: they only reach elements that are not stored."""

from tests.memory.common import over_product, random, tl, triton


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(n, B)
    i = tl.program_id(0) // columns * B + tl.arange(0, B)
    j = tl.program_id(0) % columns * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k // 16):
        at = start * 16 + tl.arange(0, 16)
        a = tl.load(a_ptr + i[:, None] * k + at[None, :], mask=(i < m)[:, None])
        b = tl.load(b_ptr + at[:, None] * n + j[None, :], mask=(j < n)[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


custom_kernel = over_product(kernel)
data = random((72, 80), (80, 104), (72, 104))


def expected(a, b, c):
    return a @ b
