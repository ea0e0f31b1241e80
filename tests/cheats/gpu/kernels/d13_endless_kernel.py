# cheat: D13 a kernel that never ends
# problem: identity
# expect: timeout
# stopped by: the time limit of a call

import triton
import triton.language as tl


@triton.jit
def endless_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)
    turns = 1
    while turns != 0:
        turns = tl.atomic_or(out_ptr.to(tl.pointer_type(tl.int32), bitcast=True), 1) | 1


def custom_kernel(data):
    x, out = data
    endless_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
    return out
