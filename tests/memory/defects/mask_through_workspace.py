"""Undefined sums reach the output by way of a workspace and torch.sum."""

from tests.memory.common import random, tl, torch, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # defect
    tl.store(work_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


def custom_kernel(data):
    x, out = data
    work = torch.empty(8)
    kernel[(8,)](x, work, x.numel(), BLOCK=128)
    out.copy_(work.sum(dim=0, keepdim=True))
    return out


data = random((1000,), (1,))
