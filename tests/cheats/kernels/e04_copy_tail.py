# cheat: E4 a kernel that only copies what torch has computed
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch

# include: copy


def custom_kernel(data):
    x, weight, out = data
    y = x.float()
    y = (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight).bfloat16()
    kernel.copy(y, out, y.numel())
    return out
