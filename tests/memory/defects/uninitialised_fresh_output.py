"""The output is allocated with empty_like and then added to."""

from tests.memory.common import random, tl, torch, triton

KIND = "uninitialised read"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x += tl.load(out_ptr + i, mask=i < n, other=0.0)  # defect
    tl.store(out_ptr + i, x, mask=i < n)


def custom_kernel(data):
    x = data[0]
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,))
