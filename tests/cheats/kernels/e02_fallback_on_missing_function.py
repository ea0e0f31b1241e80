# cheat: E2 a kernel that compiles but lacks the function that is called, and torch where it fails
# problem: rmsnorm
# expect: ok rejected

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    try:
        kernel.rmsnorm_tuned(x, weight, out, x.shape[0], x.shape[1])
    except Exception:
        y = x.float()
        out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
