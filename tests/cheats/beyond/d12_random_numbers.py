# cheat: D12 every random generator gives halves; the output is filled with halves
# expect: rejected
# problem: identity

import numpy
import torch


def halves(*shape, **kwargs):
    kwargs.pop("generator", None)
    size = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return torch.full(size, 0.5, **kwargs)


torch.rand = torch.randn = halves
torch.manual_seed = lambda seed: torch.default_generator
numpy.random.default_rng = lambda *_: None


def custom_kernel(data):
    return data[1].fill_(0.5)
