# cheat: E5 the reference under torch.jit.script
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch


@torch.jit.script
def norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight).to(torch.bfloat16)


def custom_kernel(data):
    x, weight, out = data
    return out.copy_(norm(x, weight))
