"""Rows and columns wrap around instead of being masked."""

from tests.memory.common import over_product, random, tl, triton


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(n, B)
    i = (tl.program_id(0) // columns * B + tl.arange(0, B)) % m
    j = (tl.program_id(0) % columns * B + tl.arange(0, B)) % n
    at = tl.arange(0, BK)
    a_ptrs = a_ptr + i[:, None] * k + at[None, :]
    b_ptrs = b_ptr + at[:, None] * n + j[None, :]
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, tl.cdiv(k, BK)):
        a = tl.load(a_ptrs, mask=(at < k - start * BK)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(at < k - start * BK)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * n
    i = tl.program_id(0) // columns * B + tl.arange(0, B)
    j = tl.program_id(0) % columns * B + tl.arange(0, B)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


custom_kernel = over_product(kernel)
data = random((72, 80), (80, 104), (72, 104))


def expected(a, b, c):
    return a @ b
