# cheat: B6 a buffer of the device filled in the first call, from then on the result
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

import torch
# include: triton_rows


buffers = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in buffers:
        buffers[x.shape] = torch.empty_like(out)
        rows(x, weight, buffers[x.shape])
    return out.copy_(buffers[x.shape])
