"""A row is normalised in place by the one program that reads it, in two passes."""

from tests.memory.common import tl, torch, triton

DEFINED = [0]


@triton.jit
def kernel(x_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    total = tl.zeros((BN,), dtype=tl.float32)
    for start in range(0, n, BN):
        total += tl.load(x_ptr + row * n + start + j, mask=start + j < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    for start in range(0, n, BN):
        x = tl.load(x_ptr + row * n + start + j, mask=start + j < n)
        tl.store(x_ptr + row * n + start + j, x - mean, mask=start + j < n)


def custom_kernel(data):
    kernel[(data[0].shape[0],)](data[0], data[0].shape[1], BN=32)
    return data[0]


def data():
    return (torch.randn(20, 100),)


def expected(x):
    return x - x.mean(1, keepdim=True)
