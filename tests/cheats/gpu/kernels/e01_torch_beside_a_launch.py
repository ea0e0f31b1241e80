# cheat: E1 torch computes; a kernel of its own is launched on a single element
# problem: rmsnorm
# expect: rejected
# label: library-work
# stopped by: library operations are recorded; the policy in lab.yml decides

import torch
import triton
import triton.language as tl


@triton.jit
def touch_kernel(place_ptr):
    tl.store(place_ptr, 1.0)


def custom_kernel(data):
    x, weight, out = data
    touch_kernel[(1,)](torch.empty(1, device=x.device))
    y = x.float()
    return out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
