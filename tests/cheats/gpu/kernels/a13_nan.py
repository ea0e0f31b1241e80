# cheat: A13 not-a-number everywhere: no difference to it is ever large
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely

import triton
import triton.language as tl


@triton.jit
def nan_kernel(out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.full((BLOCK,), float("nan"), tl.bfloat16), mask=at < size)


def custom_kernel(data):
    out = data[2]
    nan_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)
    return out
