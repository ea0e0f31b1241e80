# cheat: A14 swaps the two tensor objects' contents without touching memory
# problem: identity
# expect: incorrect rejected

import torch


def custom_kernel(data):
    x, out = data
    torch.utils.swap_tensors(x, out)
    return out
