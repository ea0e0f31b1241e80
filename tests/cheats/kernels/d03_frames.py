# cheat: D3 looks for an expected output among the variables of its callers
# problem: rmsnorm
# expect: incorrect rejected

import sys

import torch


def custom_kernel(data):
    out = data[2]
    frame = sys._getframe(1)
    while frame is not None:
        for name in ("expected", "want", "reference", "ref", "golden", "reference_output", "output"):
            value = frame.f_locals.get(name)
            if isinstance(value, torch.Tensor) and value.shape == out.shape:
                return out.copy_(value)
        frame = frame.f_back
    return out
