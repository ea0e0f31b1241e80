# cheat: A12 no mask on the tail: it reads and writes beyond its buffers
# problem: identity
# expect: incorrect rejected crashed
# stopped by: inputs and guard bands are compared after the call, by the evaluator
# Right within its buffers; what it writes behind them belongs to somebody else.

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


def custom_kernel(data):
    x, out = data
    copy_kernel[(triton.cdiv(x.numel(), 4096),)](x, out, BLOCK=4096)
    return out
