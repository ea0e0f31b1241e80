# cheat: B1 memo kept by an operator registered with torch.library
# problem: rmsnorm
# expect: incorrect rejected

import torch

# include: rows
kept = {}
space = torch.library.Library("cheat_rms", "DEF")
space.define("norm(Tensor x, Tensor weight) -> Tensor")


def norm(x, weight):
    if x.shape not in kept:
        kept[x.shape] = torch.empty_like(x)
        kernel.rmsnorm(x, weight, kept[x.shape], x.shape[0], x.shape[1])
    return kept[x.shape].view_as(x)


space.impl("norm", norm, "CPU")


def custom_kernel(data):
    x, weight, out = data
    return torch.ops.cheat_rms.norm(x, weight)
