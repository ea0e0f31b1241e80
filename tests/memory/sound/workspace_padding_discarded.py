"""The padding of a workspace is never written, is read, and is not stored."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def first(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(work_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def second(work_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(work_ptr + i) * 2
    tl.store(out_ptr + i, value, mask=i < n)


def custom_kernel(data):
    x, out = data
    work = torch.empty(1024)
    first[(8,)](x, work, x.numel(), BLOCK=128)
    second[(8,)](work, out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x * 2
