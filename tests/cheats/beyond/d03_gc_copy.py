# cheat: D3 copies whatever tensor of the output's form the collector knows besides the arguments
# expect: rejected
# problem: rmsnorm

import gc

import torch


def custom_kernel(data):
    x, _, out = data
    for o in gc.get_objects():
        if type(o) is torch.Tensor and o.shape == out.shape and o.dtype == out.dtype:
            if o.data_ptr() not in (x.data_ptr(), out.data_ptr()):
                return out.copy_(o)
    return out
