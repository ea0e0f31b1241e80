"""Functions that stand for those that a kernel gets as constants and calls (`ACTIVATION(x)`): they return a sum.

Imports triton only.
"""

# ruff: noqa: ANN001, ANN202
from typing import Any

import triton


@triton.jit
def _one(a):  # pyright: ignore
    return a


@triton.jit
def _two(a, b):  # pyright: ignore
    return a + b


@triton.jit
def _three(a, b, c):  # pyright: ignore
    return a + b + c


BY_ARGUMENTS: dict[int, Any] = {1: _one, 2: _two, 3: _three}
"""The functions by their number of arguments."""
