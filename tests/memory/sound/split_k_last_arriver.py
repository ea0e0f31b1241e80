"""Every split stores its part; the last to count itself in adds them all up."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, work_ptr, count_ptr, out_ptr, k, n, SPLITS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    j, split = tl.arange(0, BN), tl.program_id(0)
    at = split * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + at[:, None] * n + j[None, :], mask=(at < k)[:, None] & (j < n)[None, :], other=0.0)
    tl.store(work_ptr + split * BN + j, tl.sum(x, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1) == SPLITS - 1:
        total = tl.zeros((BN,), dtype=tl.float32)
        for s in range(SPLITS):
            total += tl.load(work_ptr + s * BN + j)
        tl.store(out_ptr + j, total, mask=j < n)


def custom_kernel(data):
    x, out = data
    k, n = x.shape
    splits = triton.cdiv(k, 16)
    work, count = torch.empty((splits, 64)), torch.zeros(1, dtype=torch.int32)
    kernel[(splits,)](x, work, count, out, k, n, SPLITS=splits, BN=64, BK=16)
    return out


data = random((100, 50), (50,))


def expected(x, out):
    return x.sum(0)
