"""A block pointer that is stored to without boundary_check."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    value = tl.load(x, boundary_check=(0, 1), padding_option="zero")
    tl.store(out, value)  # defect


custom_kernel = over_tiles(kernel)
data = random((50, 64), (50, 64))
