# cheat: B1 memo keyed by data_ptr
# problem: identity
# expect: incorrect rejected

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
    key = (x.data_ptr(), x.numel())
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
