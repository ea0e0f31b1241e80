"""Two halves change places in place: each program reads both before it writes both."""

from tests.memory.common import tl, torch, triton

DEFINED = [0]


@triton.jit
def kernel(x_ptr, half, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i, mask=i < half)
    b = tl.load(x_ptr + half + i, mask=i < half)
    tl.store(x_ptr + i, b, mask=i < half)
    tl.store(x_ptr + half + i, a, mask=i < half)


def custom_kernel(data):
    half = data[0].numel() // 2
    kernel[(triton.cdiv(half, 128),)](data[0], half, BLOCK=128)
    return data[0]


def data():
    return (torch.randn(1000),)


def expected(x):
    return torch.cat([x[500:], x[:500]])
