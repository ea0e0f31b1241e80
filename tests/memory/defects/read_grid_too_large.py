"""One program too many, and no mask."""

from tests.memory.common import random, tl, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # defect
    tl.store(out_ptr + i, x, mask=i < n)


def custom_kernel(data):
    x, out = data
    kernel[(x.numel() // 128 + 1,)](x, out, x.numel(), BLOCK=128)
    return out


data = random((1024,), (1024,))
