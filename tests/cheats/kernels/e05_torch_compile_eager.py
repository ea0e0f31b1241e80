# cheat: E5 the reference under torch.compile with a backend that compiles nothing
# problem: rmsnorm
# expect: ok rejected crashed timeout
# label: compile

import torch


@torch.compile(dynamic=True, backend="eager")
def norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight).bfloat16()


def custom_kernel(data):
    x, weight, out = data
    return out.copy_(norm(x, weight))
