# honest: the block's size is a heuristic of the size
# problem: identity
# expect: ok

import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: min(4096, triton.next_power_of_2(args["size"]))})
@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def custom_kernel(data):
    x, out = data
    copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
