"""More is stored than was loaded."""

from tests.memory.common import random, tl, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # defect
    tl.store(out_ptr + i, x, mask=i < size)


def custom_kernel(data):
    x, out = data
    kernel[(triton.cdiv(out.numel(), 128),)](x, out, x.numel(), out.numel(), BLOCK=128)
    return out


data = random((1000,), (1010,))
