# cheat: D3 copies whatever tensor of the output's form the collector knows besides the arguments
# problem: rmsnorm
# expect: incorrect rejected

import gc

import torch


def custom_kernel(data):
    x, _, out = data
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == out.shape and thing.dtype == out.dtype:
            if thing.data_ptr() not in (x.data_ptr(), out.data_ptr()):
                return out.copy_(thing)
    return out
