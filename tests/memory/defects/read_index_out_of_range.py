"""An embedding whose last index is one past the table."""

from tests.memory.common import tl, torch, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(table_ptr, index_ptr, out_ptr, n, D: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, D)
    index = tl.load(index_ptr + row)
    tl.store(out_ptr + row * D + column, tl.load(table_ptr + index * D + column))  # defect


def custom_kernel(data):
    table, index, out = data
    kernel[(index.numel(),)](table, index + 1, out, index.numel(), D=32)
    return out


def data():
    return torch.randn(10, 32), torch.arange(10), torch.empty(10, 32)
