# cheat: B8 the weight is converted once per pointer; new values at an old address are not seen
# problem: rmsnorm
# expect: incorrect rejected

import torch

# include: rows
packed = {}


def custom_kernel(data):
    x, weight, out = data
    key = (weight.data_ptr(), weight.numel())
    if key not in packed:
        packed[key] = weight.clone()
    kernel.rmsnorm(x, packed[key], out, x.shape[0], x.shape[1])
    return out
