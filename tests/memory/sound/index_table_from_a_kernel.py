"""One launch writes the indices that the next one reads by."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def first(index_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(index_ptr + i, n - 1 - i, mask=i < n)


@triton.jit
def second(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.load(x_ptr + index, mask=i < n), mask=i < n)


def custom_kernel(data):
    x, out = data
    n, grid = x.numel(), (triton.cdiv(x.numel(), 128),)
    index = torch.full((n,), 1 << 30, dtype=torch.int32)
    first[grid](index, n, BLOCK=128)
    second[grid](x, index, out, n, BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x.flip(0)
