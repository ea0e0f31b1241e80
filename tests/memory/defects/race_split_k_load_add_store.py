"""Every split of k loads, adds and stores without atomics."""

from tests.memory.common import over_k, random, tl, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, k, n, BN: tl.constexpr, BK: tl.constexpr):
    j = tl.arange(0, BN)
    at = tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
    old = tl.load(out_ptr + j, mask=j < n, other=0.0)
    tl.store(out_ptr + j, old + tl.sum(x, axis=0), mask=j < n)  # defect


custom_kernel = over_k(kernel, fill=0)
data = random((100, 50), (50,))
