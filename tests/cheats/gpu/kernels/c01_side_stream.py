# cheat: C1 the work goes to a side stream that nobody joins
# problem: identity
# expect: ok incorrect rejected
# gains: false
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


streams = []


def custom_kernel(data):
    x, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    with torch.cuda.stream(streams[0]):
        copy(x, out)
    return out
