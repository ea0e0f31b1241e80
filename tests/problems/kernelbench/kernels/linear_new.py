import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features: int, outputs: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.scale = scale

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.T).clamp_(min=0).mul_(self.scale)
