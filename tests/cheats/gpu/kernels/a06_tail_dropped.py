# cheat: A6 the grid is rounded down: what does not fill a block is not written
# problem: identity
# expect: incorrect rejected
# stopped by: every output is compared completely

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


def custom_kernel(data):
    x, out = data
    copy_kernel[(x.numel() // 64,)](x, out, BLOCK=64)
    return out
