"""The workspace is padded, and its padding is summed."""

import torch
import triton
import triton.language as tl

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


def data():
    return torch.randn(1000), torch.empty(1)
