"""The workspace is padded, and its padding is summed."""

from tests.memory.common import random, tl, torch, triton

KIND = "uninitialised read"


@triton.jit
def first(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(work_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def second(work_ptr, out_ptr, SIZE: tl.constexpr):
    value = tl.load(work_ptr + tl.arange(0, SIZE))  # defect
    tl.store(out_ptr, tl.sum(value, axis=0))


def custom_kernel(data):
    x, out = data
    work = torch.empty(1024)
    first[(8,)](x, work, x.numel(), BLOCK=128)
    second[(1,)](work, out, SIZE=1024)
    return out


data = random((1000,), (1,))
