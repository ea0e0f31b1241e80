"""A block of pointers that is transposed, masked likewise, undefined where it is not stored."""

from tests.memory.common import over_tiles, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (i < m)[:, None] & (j < n)[None, :]
    x = tl.load(tl.trans(x_ptr + i[:, None] * n + j[None, :]), mask=tl.trans(inside))
    tl.store(out_ptr + j[:, None] * m + i[None, :], x, mask=tl.trans(inside))


custom_kernel = over_tiles(kernel)
data = random((50, 70), (70, 50))


def expected(x, out):
    return x.T
