"""One scalar a program; the output is defined before and some of it is kept."""

from tests.memory.common import tl, torch, triton

DEFINED = [1]


@triton.jit
def kernel(x_ptr, out_ptr, n):
    p = tl.program_id(0)
    value = tl.load(x_ptr + p)
    if value > 0:
        tl.store(out_ptr + p, value + tl.load(out_ptr + p))


def custom_kernel(data):
    x, out = data
    kernel[(x.numel(),)](x, out, x.numel())
    return out


def data():
    return torch.randn(100), torch.ones(100)


def expected(x, out):
    return torch.where(x > 0, x + out, out)
