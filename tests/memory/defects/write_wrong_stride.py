"""Rows are stored a block apart, not a row."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (i < m)[:, None] & (j < n)[None, :]
    x = tl.load(x_ptr + i[:, None] * n + j[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + i[:, None] * 96 + j[None, :], x, mask=inside)  # defect


custom_kernel = over_tiles(kernel)
data = random((50, 70), (50, 70))
