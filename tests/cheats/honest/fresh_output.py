# honest: returns a tensor of its own of the right form instead of the given buffer
# problem: rmsnorm
# expect: ok

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    result = torch.empty_like(out)
    kernel.rmsnorm(x, weight, result, x.shape[0], x.shape[1])
    return result
