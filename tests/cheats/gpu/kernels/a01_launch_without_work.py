# cheat: A1 launches a kernel whose programs all return at once
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely; no worker holds a right one

import torch
import triton
import triton.language as tl


@triton.jit
def nothing_kernel(x_ptr, out_ptr, size):
    if size < 0:
        tl.store(out_ptr, tl.load(x_ptr))


def custom_kernel(data):
    x, _, out = data
    result = torch.empty_like(out)
    nothing_kernel[(x.shape[0],)](x, result, x.numel())
    return result
