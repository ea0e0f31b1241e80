"""Partial sums of gradients in groups, each behind a lock; the first to come stores, the others add."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, part_ptr, lock_ptr, count_ptr, n, GROUP: tl.constexpr, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    mask = j < n
    partial = tl.load(x_ptr + row * n + j, mask=mask, other=0.0) * 2
    group = row % GROUP
    lock, count = lock_ptr + group, count_ptr + group
    part_ptrs = part_ptr + group * n + j
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial += tl.load(part_ptrs, mask=mask)
    tl.store(part_ptrs, partial, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def finish(part_ptr, out_ptr, n, GROUP: tl.constexpr, BN: tl.constexpr):
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), dtype=tl.float32)
    for group in range(GROUP):
        total += tl.load(part_ptr + group * n + j, mask=j < n, other=0.0)
    tl.store(out_ptr + j, total, mask=j < n)


def custom_kernel(data):
    x, out = data
    m, n = x.shape
    parts = torch.empty(4, n)
    locks = torch.zeros(8, dtype=torch.int32)
    kernel[(m,)](x, parts, locks, locks[4:], n, GROUP=4, BN=128)
    finish[(triton.cdiv(n, 64),)](parts, out, n, GROUP=4, BN=64)
    return out


data = random((20, 100), (100,))


def expected(x, out):
    return 2 * x.sum(0)
