# cheat: A1 every eighth tile is written, the others stay as they are
# problem: identity
# expect: incorrect rejected
# stopped by: every output is compared completely; no worker holds a right one

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * 8 * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def custom_kernel(data):
    x, out = data
    copy_kernel[(triton.cdiv(x.numel(), 8 * 16),)](x, out, x.numel(), BLOCK=16)
    return out
