"""The output is allocated with torch.empty and returned."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def custom_kernel(data):
    x = data[0]
    out = torch.empty(x.shape)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x * 2
