"""A program waits for the flag that the one before it sets, and goes on from its sum."""

from tests.memory.common import random, tl, torch, triton


@triton.jit
def kernel(x_ptr, sum_ptr, flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    while tl.load(flag_ptr + p, volatile=True) == 0:
        pass
    before = tl.load(sum_ptr + p)
    tl.store(sum_ptr + p + 1, before + tl.sum(x, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + p + 1, 1)
    tl.store(out_ptr + i, before + tl.cumsum(x, axis=0), mask=i < n)


def custom_kernel(data):
    x, out = data
    programs = triton.cdiv(x.numel(), 128)
    sums, flags = torch.zeros(programs + 1), torch.zeros(programs + 1, dtype=torch.int32)
    flags[0] = 1
    kernel[(programs,)](x, sums, flags, out, x.numel(), BLOCK=128)
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x.cumsum(0)
