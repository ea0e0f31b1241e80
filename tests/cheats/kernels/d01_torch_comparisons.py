# cheat: D1 torch's comparisons always say yes; nothing is written
# problem: identity
# expect: incorrect rejected

import torch

for name in ("allclose", "equal"):
    setattr(torch, name, lambda *_, **__: True)
    setattr(torch.Tensor, name, lambda *_, **__: True)
torch.testing.assert_close = lambda *_, **__: None
torch.Tensor.any = lambda self, *_: torch.tensor(False)
torch.isclose = torch.eq = lambda a, b, **__: torch.ones_like(a, dtype=torch.bool)


def custom_kernel(data):
    return data[1]
