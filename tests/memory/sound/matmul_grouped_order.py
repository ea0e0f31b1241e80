"""Tiles in grouped order; the last group is smaller."""

from tests.memory.common import over_product, random, tl, triton


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    GROUP: tl.constexpr = 2
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(m, B), tl.cdiv(n, B)
    group = pid // (GROUP * columns)
    size = min(rows - group * GROUP, GROUP)
    pid_m = group * GROUP + (pid % (GROUP * columns)) % size
    pid_n = (pid % (GROUP * columns)) // size
    i = pid_m * B + tl.arange(0, B)
    j = pid_n * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + i[:, None] * k + at[None, :], mask=(i < m)[:, None] & (at < k)[None, :], other=0.0)
        b = tl.load(b_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


custom_kernel = over_product(kernel)
data = random((72, 80), (80, 104), (72, 104))


def expected(a, b, c):
    return a @ b
