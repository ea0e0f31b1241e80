"""A histogram whose padding counts too, in a bin that is not there."""

from tests.memory.common import over_elements, tl, torch, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=16)
    tl.atomic_add(out_ptr + x, 1)  # defect


custom_kernel = over_elements(kernel, fill=0)


def data():
    return torch.randint(0, 16, (1000,), dtype=torch.int32), torch.empty(16, dtype=torch.int32)
