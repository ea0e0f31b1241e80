"""Two results in the halves of a workspace, one of them undefined, added up by torch."""

from tests.memory.common import random, tl, torch, triton

KIND = "mask mistake"


@triton.jit
def kernel(x_ptr, sum_ptr, max_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n)  # defect
    tl.store(sum_ptr + row, tl.sum(tl.where(j < n, x, 0.0), axis=0))
    tl.store(max_ptr + row, tl.max(x, axis=0))


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    work = torch.empty(2 * m)
    kernel[(m,)](x, work[:m], work[m:], n, BN=128)
    torch.add(work[:m], work[m:], out=out)
    return out


data = random((20, 100), (20,))
