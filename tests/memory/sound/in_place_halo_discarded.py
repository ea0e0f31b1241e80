"""Blocks of rows in place: a block reads into the next one, and makes no use of it."""

from tests.memory.common import tl, torch, triton

DEFINED = [0]


@triton.jit
def kernel(x_ptr, n, ROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * ROW + i
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    total = tl.sum(tl.where(i < ROW, x, 0.0), axis=0)
    tl.store(x_ptr + at, x - total, mask=i < ROW)


def custom_kernel(data):
    x = data[0]
    kernel[(x.numel() // 100,)](x, x.numel(), ROW=100, BLOCK=128)
    return x


def data():
    return (torch.randn(1000),)


def expected(x):
    return (x.view(10, 100) - x.view(10, 100).sum(1, keepdim=True)).view(-1)
