"""The offset leads exactly into another live tensor."""

from tests.memory.common import random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, away, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + away + i, mask=i < n, other=0.0)  # defect
    tl.store(out_ptr + i, x, mask=i < n)


def custom_kernel(data):
    x, y, out = data
    away = (y.data_ptr() - x.data_ptr()) // 4
    kernel[(8,)](x, out, x.numel(), away, BLOCK=128)
    return out


data = random((1000,), (1000,), (1000,))
