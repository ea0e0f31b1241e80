"""Two buffers in turn: every launch reads what the last one wrote."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i, mask=i < n)
    b = tl.load(x_ptr + (i + 1) % n)
    tl.store(out_ptr + i, a + b, mask=i < n)


def custom_kernel(data):
    x, out = data
    grid, other = (triton.cdiv(x.numel(), 128),), torch.empty_like(x)
    kernel[grid](x, out, x.numel(), BLOCK=128)
    kernel[grid](out, other, x.numel(), BLOCK=128)
    kernel[grid](other, out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x + 3 * x.roll(-1) + 3 * x.roll(-2) + x.roll(-3)
