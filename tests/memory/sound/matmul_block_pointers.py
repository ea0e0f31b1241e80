"""Block pointers that advance, checked and padded with zeros."""

from tests.memory.common import over_product, random, tl, triton


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, B: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(n, B)
    row, col = tl.program_id(0) // columns * B, tl.program_id(0) % columns * B
    a = tl.make_block_ptr(a_ptr, (m, k), (k, 1), (row, 0), (B, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (0, col), (BK, B), (1, 0))
    acc = tl.zeros((B, B), dtype=tl.float32)
    for _ in range(0, k, BK):
        left = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(left, tl.load(b, boundary_check=(0, 1), padding_option="zero"))
        a = tl.advance(a, (0, BK))
        b = tl.advance(b, (BK, 0))
    c = tl.make_block_ptr(c_ptr, (m, n), (n, 1), (row, col), (B, B), (1, 0))
    tl.store(c, acc, boundary_check=(0, 1))


custom_kernel = over_product(kernel)
data = random((72, 80), (80, 104), (72, 104))


def expected(a, b, c):
    return a @ b
