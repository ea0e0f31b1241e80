"""A block of pointers that is transposed; the mask has forgotten the rows."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(tl.trans(x_ptr + i[:, None] * n + j[None, :]), mask=(j < n)[:, None], other=0.0)  # defect
    tl.store(out_ptr + j[:, None] * m + i[None, :], x, mask=(j < n)[:, None] & (i < m)[None, :])


custom_kernel = over_tiles(kernel)
data = random((50, 70), (70, 50))
