# cheat: C6 torch's events, their times and synchronize are replaced at import
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Its times come from functions that were bound natively before its file was read.

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


torch.cuda.Event.elapsed_time = lambda *_: 0.001
torch.cuda.Event.record = lambda *_: None
torch.cuda.Event.synchronize = lambda *_: None
torch.cuda.synchronize = lambda *_: None


def custom_kernel(data):
    x, out = data
    copy(x, out)
    return out
