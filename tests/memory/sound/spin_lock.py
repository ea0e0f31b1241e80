"""Load, add and store behind a lock that is taken by compare and swap."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def custom_kernel(data):
    x, out = data
    out.zero_()
    lock = torch.zeros(1, dtype=torch.int32)
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, lock, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1,))


def expected(x, out):
    return x.sum().view(1)
