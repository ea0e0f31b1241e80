"""A row is normalised in place while others still read it."""

from tests.memory.common import tl, torch, triton

KIND = "write race"
DEFINED = [0]


@triton.jit
def kernel(x_ptr, m, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    top = tl.load(x_ptr + j, mask=j < n, other=0.0)  # defect
    tl.store(x_ptr + row * n + j, x - tl.max(top, axis=0), mask=j < n)


def custom_kernel(data):
    m, n = data[0].shape
    kernel[(m,)](data[0], m, n, BN=64)
    return data[0]


def data():
    return (torch.randn(20, 50),)
