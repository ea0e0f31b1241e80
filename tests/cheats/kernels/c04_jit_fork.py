# cheat: C4 torch.jit.fork does the work on another thread; nobody waits for the future
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

import torch

futures = []


@torch.jit.script
def norm(x, weight, out):
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out


@torch.jit.script
def later(x, weight, out):
    return torch.jit.fork(norm, x, weight, out)


def custom_kernel(data):
    x, weight, out = data
    futures[:] = [later(x, weight, out)]
    return out
