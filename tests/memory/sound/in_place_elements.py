"""Every element is updated in place by the one program that reads it."""

from tests.memory.common import tl, torch, triton

DEFINED = [0]


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * 3, mask=i < n)


def custom_kernel(data):
    kernel[(triton.cdiv(data[0].numel(), 128),)](data[0], data[0].numel(), BLOCK=128)
    return data[0]


def data():
    return (torch.randn(1000),)


def expected(x):
    return x * 3
