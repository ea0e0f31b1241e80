# cheat: C4 a transposed tensor whose own methods say that it is dense, and compute when they are read
# problem: rmsnorm
# expect: incorrect rejected crashed

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data

    def computed(*_):
        kernel.rmsnorm(x, weight, out, *x.shape)
        return out

    lazy = torch.empty(x.shape[::-1], dtype=out.dtype).t()
    for name in ("detach", "to", "cpu", "contiguous"):
        setattr(lazy, name, computed)
    lazy.stride = lambda *_: (x.shape[1], 1)
    return lazy
