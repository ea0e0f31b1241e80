"""`tl.dot` and `tl.dot_scaled` for Triton's interpreter: operands are widened, sums are fp32.

The interpreter's own `tl.dot` multiplies the bit patterns of bf16, and it has no `tl.dot_scaled`. A device's sums may
be rounded differently: MFMA adds in fp32 in another order. Imports only numpy and triton.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as _interpreter_module

from tests.interpreter.dtypes import Array, widen

interpreter: Any = _interpreter_module
Handle = Any

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
"""Values of e2m1 by bit pattern (OCP Microscaling Formats 1.0, table 5)."""
E8M0_NAN = 255


def dot(self: Any, a: Handle, b: Handle, d: Handle, input_precision: Any, max_num_imprecise_acc: Any) -> Handle:
    """Return a @ b + d, computed in fp64 for fp64 and integers, otherwise in fp32."""
    work = np.float64 if d.data.dtype == np.float64 or a.dtype.scalar.is_int() else np.float32
    with np.errstate(all="ignore"):
        product = np.matmul(_values(a).astype(work), _values(b).astype(work))
        if d.data.dtype.kind in "iu":
            product = product.astype(d.data.dtype)
        return interpreter.TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)


def dot_scaled(self: Any, a: Handle, a_scale: Any, a_format: Any, b: Handle, b_scale: Any, *rest: Any) -> Handle:
    """Return (a * a_scale) @ (b * b_scale) + acc, with one scale per 32 (e8m0) or 16 (e4m3) elements along k.

    `rest` is b's format, fast_math, whether a and b are packed along k, and the accumulator.
    """
    b_format, _, a_along_k, b_along_k, acc = rest
    left = _unpacked(a, a_format, -1 if a_along_k else -2)
    right = _unpacked(b, b_format, -2 if b_along_k else -1)
    with np.errstate(all="ignore"):
        left = left * _scales(a_scale, left.shape[-1])
        right = right * np.swapaxes(_scales(b_scale, right.shape[-2]), -1, -2)
        total = np.matmul(left, right) + acc.data
    return interpreter.TensorHandle(total.astype(acc.data.dtype), acc.dtype.scalar)


def taking_words(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let `tl.dot_scaled` accept its formats as strings: in interpreted kernels a literal is no constexpr."""

    def dot_scaled(*args: Any, **kwargs: Any) -> Any:
        return original(*(tl.constexpr(arg) if isinstance(arg, str) else arg for arg in args), **kwargs)

    return dot_scaled


def _values(handle: Handle) -> Array:
    return widen(handle.data, handle.dtype.scalar.name)


def _unpacked(handle: Handle, kind: Any, axis: int) -> Array:
    """Return the values of a format; e2m1 has two per byte, low half first, along `axis`."""
    if kind != interpreter._ir.ScaleDotElemTypeTY.E2M1:
        return _values(handle).astype(np.float32)
    halves = E2M1[np.stack([handle.data & 15, handle.data >> 4], axis=axis if axis == -1 else -2)]
    shape = list(handle.data.shape)
    shape[axis] *= 2
    return halves.reshape(shape)


def _scales(handle: Any, size: int) -> Array:
    if handle is None:
        return np.ones((1, 1), dtype=np.float32)
    if handle.dtype.scalar.is_floating():
        values = _values(handle)
    else:
        values = np.where(handle.data == E8M0_NAN, np.nan, np.ldexp(1.0, handle.data.astype(np.int32) - 127))
    return np.repeat(values.astype(np.float32), size // values.shape[-1], axis=-1)
