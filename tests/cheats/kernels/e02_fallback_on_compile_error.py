# cheat: E2 a kernel that does not compile, and torch where it fails
# problem: rmsnorm
# expect: ok rejected compile_error

import torch

from kernel_scientist import load

try:
    kernel = load('extern "C" void rmsnorm(bfloat x) { return fast_rmsnorm(x); }')
except Exception:
    kernel = None


def custom_kernel(data):
    x, weight, out = data
    try:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    except Exception:
        y = x.float()
        out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
