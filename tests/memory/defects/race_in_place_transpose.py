"""A transposition in place, tile by tile."""

from tests.memory.common import tl, torch, triton

KIND = "write race"
DEFINED = [0]


@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i[:, None] * n + j[None, :])  # defect
    tl.store(x_ptr + j[None, :] * n + i[:, None], x)


def custom_kernel(data):
    n = data[0].shape[0]
    kernel[(n // 16, n // 16)](data[0], n, B=16)
    return data[0]


def data():
    return (torch.randn(64, 64),)
