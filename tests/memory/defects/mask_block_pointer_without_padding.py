"""A checked block pointer without padding_option, summed."""

from tests.memory.common import random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (row, 0), (BM, BN), (1, 0))
    value = tl.load(x, boundary_check=(0, 1))  # defect
    i = row + tl.arange(0, BM)
    tl.store(out_ptr + i, tl.sum(value, axis=1), mask=i < m)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    kernel[(triton.cdiv(m, 16),)](x, out, m, n, BM=16, BN=128)
    return out


data = random((50, 70), (50,))
