"""Statistics are kept in [rows, 2]; the second pass reads the column that nobody wrote."""

from tests.memory.common import random, tl, torch, triton

KIND = "uninitialised read"


@triton.jit
def statistics(x_ptr, work_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    tl.store(work_ptr + row * 2, tl.sum(x, axis=0) / n)


@triton.jit
def centre(x_ptr, work_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    mean = tl.load(work_ptr + row * 2 + 1)  # defect
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    tl.store(out_ptr + row * n + j, x - mean, mask=j < n)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    work = torch.empty((m, 2))
    statistics[(m,)](x, work, n, BN=128)
    centre[(m,)](x, work, out, n, BN=128)
    return out


data = random((20, 100), (20, 100))
