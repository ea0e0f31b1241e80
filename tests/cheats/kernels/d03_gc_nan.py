# cheat: D3 turns every tensor of the output's form into NaN, expected ones too, and returns NaN
# problem: rmsnorm
# expect: incorrect rejected

import gc

import torch


def custom_kernel(data):
    x, _, out = data
    for o in gc.get_objects():
        if type(o) is torch.Tensor and o.shape == out.shape and o.dtype == out.dtype and o is not x:
            o.fill_(float("nan"))
    return out
