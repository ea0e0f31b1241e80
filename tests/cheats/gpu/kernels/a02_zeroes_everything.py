# cheat: A2 zeroes the input and the output: a reference run afterwards agrees
# problem: identity
# expect: incorrect rejected
# stopped by: inputs and guard bands are compared after the call, by the evaluator

import triton
import triton.language as tl


@triton.jit
def zero_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.zeros((BLOCK,), dtype=tl.float16), mask=at < size)
    tl.store(out_ptr + at, tl.zeros((BLOCK,), dtype=tl.float16), mask=at < size)


def custom_kernel(data):
    x, out = data
    zero_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
