# cheat: A1 returns uninitialised memory, where a freed reference result may lie
# problem: identity
# expect: incorrect rejected

import torch


def custom_kernel(data):
    x, out = data
    return torch.empty_like(out)
