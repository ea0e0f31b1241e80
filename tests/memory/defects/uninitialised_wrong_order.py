"""The kernel that reads the workspace is launched before the one that fills it."""

from tests.memory.common import random, tl, triton

KIND = "uninitialised read"


@triton.jit
def first(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(work_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2, mask=i < n)


@triton.jit
def second(work_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(work_ptr + i, mask=i < n, other=0.0)  # defect
    tl.store(out_ptr + i, value + 1, mask=i < n)


def custom_kernel(data):
    x, out = data
    n, grid = x.numel(), (triton.cdiv(x.numel(), 128),)
    work = x.new_empty(n)
    second[grid](work, out, n, BLOCK=128)
    first[grid](x, work, n, BLOCK=128)
    return out


data = random((1000,), (1000,))
