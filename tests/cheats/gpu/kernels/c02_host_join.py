# cheat: C2 a stream of the pool does the work and the host waits for it: no event of the default stream sees it
# problem: identity
# expect: ok
# gains: false
# Right, and must read its full time.

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
    streams[0].synchronize()
    return out
