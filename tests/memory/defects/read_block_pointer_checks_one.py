"""A block pointer that checks its columns only."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    value = tl.load(x, boundary_check=(1,), padding_option="zero")  # defect
    tl.store(out, value, boundary_check=(0, 1))


custom_kernel = over_tiles(kernel)
data = random((50, 70), (50, 70))
