# cheat: E4 a kernel whose result for the first row is discarded; torch does the work
# problem: rmsnorm
# expect: ok rejected
# label: decoy

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    scratch = torch.empty_like(out[:1])
    kernel.rmsnorm(x, weight, scratch, 1, x.shape[1])
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
