"""What the kernels of this corpus share: how they are launched, and tensors of random numbers with an empty output."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["over_elements", "over_k", "over_product", "over_rows", "over_tiles", "random", "tl", "torch", "triton"]

Tensors = tuple[torch.Tensor, ...]
Launch = Callable[[Tensors], torch.Tensor]


def random(*shapes: tuple[int, ...]) -> Callable[[], Tensors]:
    """Return what makes random tensors of all shapes but the last, and an empty one of the last."""
    return lambda: (*(torch.randn(shape) for shape in shapes[:-1]), torch.empty(shapes[-1]))


def over_elements(kernel: Any, fill: float | None = None, block: int = 128) -> Launch:
    """Return a launch with a program for each block of elements; `fill` is what the output holds before."""

    def custom_kernel(data: Tensors) -> torch.Tensor:
        x, out = data
        if fill is not None:
            out.fill_(fill)
        kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=128)
        return out

    return custom_kernel


def over_rows(kernel: Any, block: int = 128) -> Launch:
    """Return a launch with a program for each row."""

    def custom_kernel(data: Tensors) -> torch.Tensor:
        x, out = data
        kernel[(x.shape[0],)](x, out, x.shape[1], BN=block)
        return out

    return custom_kernel


def over_tiles(kernel: Any) -> Launch:
    """Return a launch with a program for each tile of 16 rows and 32 columns."""

    def custom_kernel(data: Tensors) -> torch.Tensor:
        x, out = data
        m, n = x.shape
        kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, out, m, n, BM=16, BN=32)
        return out

    return custom_kernel


def over_k(kernel: Any, fill: float | None = None, block: int = 16) -> Launch:
    """Return a launch with a program for each block of rows, over which a sum is taken."""

    def custom_kernel(data: Tensors) -> torch.Tensor:
        x, out = data
        k, n = x.shape
        if fill is not None:
            out.fill_(fill)
        kernel[(triton.cdiv(k, block),)](x, out, k, n, BN=64, BK=block)
        return out

    return custom_kernel


def over_product(kernel: Any, axes: int = 1) -> Launch:
    """Return a launch with a program for each tile of a matrix product, in a grid of one axis or of two."""

    def custom_kernel(data: Tensors) -> torch.Tensor:
        a, b, c = data
        (m, k), n = a.shape, b.shape[1]
        rows, columns = triton.cdiv(m, 32), triton.cdiv(n, 32)
        kernel[(rows * columns,) if axes == 1 else (rows, columns)](a, b, c, m, n, k, B=32, BK=32)
        return c

    return custom_kernel
