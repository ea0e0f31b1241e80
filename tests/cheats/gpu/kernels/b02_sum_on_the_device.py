# cheat: B2 memo keyed by a sum of the input's bits
# problem: identity
# expect: ok incorrect rejected
# gains: false
# An input that was almost the last one has the same sum: its values have only changed places.

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.numel(), int(x.view(torch.int16).sum()))
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
