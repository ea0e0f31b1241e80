import torch
import torch.nn as nn

size = 1024


class Model(nn.Module):
    """Dropout in training mode: the output is random."""

    def __init__(self, p: float):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.drop(x)


def get_inputs():
    return [torch.randn(256, size)]


def get_init_inputs():
    return [0.5]
