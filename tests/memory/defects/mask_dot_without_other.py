"""A matrix product whose padding along k is undefined in a."""

from tests.memory.common import over_product, random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    kk = tl.arange(0, BK)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + kk
        a = tl.load(a_ptr + i[:, None] * k + at[None, :], mask=(i < m)[:, None] & (at < k)[None, :])  # defect
        b = tl.load(b_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


custom_kernel = over_product(kernel, axes=2)
data = random((40, 80), (80, 48), (40, 48))
