"""The first of two kernels leaves the tail of the workspace out: // where cdiv belongs."""

from tests.memory.common import random, tl, torch, triton

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
    n = x.numel()
    work = torch.empty_like(x)
    first[(n // 128,)](x, work, n, BLOCK=128)
    second[(triton.cdiv(n, 128),)](work, out, n, BLOCK=128)
    return out


data = random((1000,), (1000,))
