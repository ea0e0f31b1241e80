"""The index of the largest may lie in the padding."""

from tests.memory.common import over_rows, tl, torch, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n)  # defect
    tl.store(out_ptr + row, tl.argmax(x, axis=0))


custom_kernel = over_rows(kernel)


def data():
    return torch.randn(4, 100), torch.empty(4, dtype=torch.int32)
