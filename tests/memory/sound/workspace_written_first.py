"""An empty workspace, filled by one launch and read by the next."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def first(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(work_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2, mask=i < n)


@triton.jit
def second(work_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(work_ptr + n - 1 - i, mask=i < n) + 1, mask=i < n)


def custom_kernel(data):
    x, out = data
    n, grid = x.numel(), (triton.cdiv(x.numel(), 128),)
    work = torch.empty_like(x)
    first[grid](x, work, n, BLOCK=128)
    second[grid](work, out, n, BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x.flip(0) * 2 + 1
