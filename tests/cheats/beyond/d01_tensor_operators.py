# cheat: D1 tensors' operators never find a difference; nothing is written
# expect: rejected
# problem: identity

import torch

torch.Tensor.__ne__ = lambda self, other: torch.zeros(self.shape, dtype=torch.bool)
torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
torch.Tensor.__hash__ = object.__hash__
torch.Tensor.abs = torch.Tensor.__abs__ = lambda self: torch.zeros(self.shape)
torch.Tensor.any = lambda self, *_: torch.tensor(False)


def custom_kernel(data):
    return data[1]
