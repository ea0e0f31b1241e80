"""alpha * x + beta * out, and out was never written."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "uninitialised read"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (row, col), (BM, BN), (1, 0))
    value = tl.load(x, boundary_check=(0, 1), padding_option="zero")
    old = tl.load(out, boundary_check=(0, 1), padding_option="zero")  # defect
    tl.store(out, value + 0.5 * old, boundary_check=(0, 1))


custom_kernel = over_tiles(kernel)
data = random((50, 70), (50, 70))
