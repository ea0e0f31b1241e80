import torch
import torch.nn as nn

batch_size = 256
features = 768
eps = 1e-5


class Model(nn.Module):
    """A linear layer, GELU in tanh form, layer normalisation, and the input added again."""

    def __init__(self, features: int, eps: float):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features, eps=eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm(torch.nn.functional.gelu(self.linear(x), approximate="tanh"))


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features, eps]
