from dataclasses import dataclass

import torch


@dataclass
class Config:
    batch_size: int
    width: int


def custom_kernel(data):
    config, x, cache = data
    torch.cuda.synchronize()
    rows, length = cache(torch.nn.functional.linear(x, config.down))
    assert length == cache.seq_len
    weights = torch.softmax(rows[:, -1:, :] @ rows.transpose(1, 2) / 8, dim=-1)
    return torch.nn.functional.linear(weights @ rows, config.out), cache.data
