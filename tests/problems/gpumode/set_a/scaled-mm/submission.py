from utils import make_match_reference  # noqa: F401 - as submissions of the wild do

import torch


def custom_kernel(data):
    a, b, rows, c = data
    wide = (a.to(torch.float32).view(a.shape[0], -1, 128) * rows[:, :, None]).flatten(1)
    torch.mm(wide, b.to(torch.float32).T, out=(product := torch.empty(c.shape, device="cuda")))
    c.copy_(product)
    return c
