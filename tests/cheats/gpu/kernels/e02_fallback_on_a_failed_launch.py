# cheat: E2 a kernel that does not compile, and torch where it fails
# problem: rmsnorm
# expect: rejected
# stopped by: library operations are recorded; the policy in lab.yml decides

import torch
import triton
import triton.language as tl


@triton.jit
def broken_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * nowhere)


def custom_kernel(data):
    x, weight, out = data
    try:
        broken_kernel[(1,)](x, out, BLOCK=1024)
    except Exception:
        y = x.float()
        out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
