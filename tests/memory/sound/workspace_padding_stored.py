"""Undefined lanes are stored in the padding of a workspace, and sliced off."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + 1)


def custom_kernel(data):
    x, out = data
    work = torch.empty(1024)
    kernel[(8,)](x, work, x.numel(), BLOCK=128)
    out.copy_(work[: x.numel()])
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x + 1
