"""The index of a lane that is switched off is used as an address."""

from tests.memory.common import tl, torch, triton

KIND = "mask mistake"


@triton.jit
def kernel(table_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < n)  # defect
    value = tl.load(table_ptr + index)
    tl.store(out_ptr + i, value, mask=i < n)


def custom_kernel(data):
    table, index, out = data
    kernel[(triton.cdiv(index.numel(), 128),)](table, index, out, index.numel(), BLOCK=128)
    return out


def data():
    return torch.randn(64), torch.randint(0, 64, (1000,)), torch.empty(1000)
