"""Several tensors in one launch, their addresses in a tensor of integers."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    x_ptr = tl.load(table_ptr + p).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + p * n + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def custom_kernel(data):
    x, out = data
    parts = [row.clone() for row in x]
    table = torch.tensor([part.data_ptr() for part in parts])
    kernel[(len(parts),)](table, out, x.shape[1], BLOCK=128)
    return out


data = random((5, 100), (5, 100))


def expected(x, out):
    return x
