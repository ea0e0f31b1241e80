# cheat: E4 a kernel under a condition that never holds; torch does the work
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    if x.numel() < 0:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
