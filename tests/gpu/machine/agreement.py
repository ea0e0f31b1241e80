"""How far results in bf16 of two computations may be apart that add in different orders or round differently inside."""

import torch

OF_SUMS = 2.0**-18
"""Of a row's root mean square, for sums that cancel: two orders of a sum of 1024 terms in fp32 differ by about
2 * sqrt(1024) * 2^-24 of the terms' spread."""


def unit(x: torch.Tensor) -> torch.Tensor:
    """The distance of neighbours in bf16 at numbers of that size."""
    return torch.exp2(torch.floor(torch.log2(x.abs().clamp_min(2.0**-126))) - 7)


def units_apart(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """By how many units in the last place of bf16 numbers differ: units of the larger one; NaN where one is NaN."""
    got, want = got.double(), want.double()
    return (got - want).abs() / unit(torch.maximum(got.abs(), want.abs()))


def apart(got: torch.Tensor, want: torch.Tensor, of_row: float) -> torch.Tensor:
    """Where results differ by more than one unit in the last place and a share of their row's root mean square."""
    got, want = got.double(), want.double()
    spread = want.square().mean(dim=-1, keepdim=True).sqrt()
    return ~((got - want).abs() <= unit(torch.maximum(got.abs(), want.abs())) + of_row * spread)
