"""torch.empty, then filled by torch in part, accumulated into by a kernel in that part."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(out_ptr + i, mask=i < n)
    tl.store(out_ptr + i, old + tl.load(x_ptr + i, mask=i < n), mask=i < n)


def custom_kernel(data):
    x, out = data
    work = torch.empty(2000)
    work[:1000] = 1.0
    kernel[(8,)](x, work, 1000, BLOCK=128)
    out.copy_(work[:1000])
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x + 1
