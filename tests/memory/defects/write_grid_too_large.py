"""One program too many, its store not masked."""

from tests.memory.common import random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x)  # defect


def custom_kernel(data):
    x, out = data
    kernel[(x.numel() // 128 + 1,)](x, out, x.numel(), BLOCK=128)
    return out


data = random((1024,), (1024,))
