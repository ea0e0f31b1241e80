"""Inputs of matrix products whose sums fp32 holds exactly, so that every order of addition gives the same number."""

import torch


def fill(data: tuple[torch.Tensor, ...]) -> None:
    """Fill a product's operands with whole numbers up to 8, and its scales in fp32 with powers of two up to 4.

    The last tensor, which the product goes to, is left alone.
    """
    gen = torch.Generator().manual_seed(1)
    for x in data[:-1]:
        if x.dtype == torch.float32:
            x.copy_(torch.exp2(torch.randint(-2, 3, x.shape, generator=gen).float()))
        else:
            x.copy_(torch.randint(-8, 9, x.shape, generator=gen).float())
