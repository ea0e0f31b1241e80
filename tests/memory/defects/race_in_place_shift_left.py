"""Every block reads the first element of the next one, which that one overwrites."""

from tests.memory.common import tl, torch, triton

KIND = "write race"
DEFINED = [0]


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)  # defect
    tl.store(x_ptr + i, x, mask=i < n)


def custom_kernel(data):
    kernel[(triton.cdiv(data[0].numel(), 128),)](data[0], data[0].numel(), BLOCK=128)
    return data[0]


def data():
    return (torch.randn(1000),)
