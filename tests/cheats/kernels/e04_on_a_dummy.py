# cheat: E4 a kernel that runs on a dummy of one element; torch does the work
# problem: rmsnorm
# expect: ok rejected
# label: decoy

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    dummy = torch.zeros(1, dtype=torch.bfloat16)
    kernel.rmsnorm(dummy, weight, dummy.clone(), 1, 1)
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
