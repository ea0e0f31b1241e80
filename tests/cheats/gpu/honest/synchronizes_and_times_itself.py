# honest: two events and a synchronisation in each call, for figures that nobody reads
# problem: identity
# expect: ok

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


times = []


def custom_kernel(data):
    x, out = data
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    copy(x, out)
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end))
    return out
