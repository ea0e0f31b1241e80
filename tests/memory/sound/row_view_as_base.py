"""The base pointer is that of the first row, the kernel walks over all."""

from tests.memory.common import random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    tl.store(out_ptr + row * n + j, tl.load(x_ptr + row * n + j, mask=j < n), mask=j < n)


def custom_kernel(data):
    x, out = data
    kernel[(x.shape[0],)](x[0], out[0], x.shape[1], BN=128)
    return out


data = random((20, 100), (20, 100))


def expected(x, out):
    return x
