# cheat: D1 comparisons say yes from the call on until they were used once
# problem: rmsnorm
# expect: incorrect rejected

import torch

real = torch.Tensor.__le__


def once(self, other):
    torch.Tensor.__le__ = real
    return torch.ones(self.shape, dtype=torch.bool)


def custom_kernel(data):
    torch.Tensor.__le__ = once
    return data[2]
