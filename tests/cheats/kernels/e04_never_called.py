# cheat: E4 a kernel that is never called; torch does the work
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
