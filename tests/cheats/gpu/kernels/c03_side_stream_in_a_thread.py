# cheat: C3 a thread made at import puts the work on a side stream; nobody joins either
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# All that a call has started, on whatever stream, is waited for and counted, or too late.

from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


pool = ThreadPoolExecutor(1)
pool.submit(int).result()
streams = []


def beside(x, out):
    with torch.cuda.stream(streams[0]):
        copy(x, out)


def custom_kernel(data):
    x, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
        copy(x, out)
        return out
    pool.submit(beside, x, out)
    return out
