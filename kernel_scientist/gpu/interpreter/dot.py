"""`tl.dot` and `tl.dot_scaled` for Triton's interpreter: every operand widened, sums in fp32.

The interpreter's own dot multiplies the bit patterns of bf16 and knows no microscaled one. A device's sums may be
rounded differently: MFMA adds up in fp32, in an order of its own. Imports only numpy and triton.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as _interpreter_module

from kernel_scientist.gpu.interpreter.dtypes import Array, widen

interpreter: Any = _interpreter_module
Handle = Any

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
"""OCP Microscaling Formats 1.0, table 5."""
E8M0_NAN = 255


def dot(self: Any, a: Handle, b: Handle, d: Handle, input_precision: Any, max_num_imprecise_acc: Any) -> Handle:
    """a @ b + d; in fp64 for fp64 and for integers, which it holds exactly."""
    work = np.float64 if d.data.dtype == np.float64 or a.dtype.scalar.is_int() else np.float32
    with np.errstate(all="ignore"):
        product = np.matmul(_values(a).astype(work), _values(b).astype(work))
        if d.data.dtype.kind in "iu":
            product = product.astype(d.data.dtype)
        return interpreter.TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)


def dot_scaled(self: Any, a: Handle, a_scale: Any, a_format: Any, b: Handle, b_scale: Any, *rest: Any) -> Handle:
    """(a * a_scale) @ (b * b_scale) + acc: one scale (e8m0, or e4m3) for 32 (16) elements along k.

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
    """Let `tl.dot_scaled` be given its formats as strings: interpreted kernels have no constexpr for a literal."""

    def dot_scaled(*args: Any, **kwargs: Any) -> Any:
        return original(*(tl.constexpr(arg) if isinstance(arg, str) else arg for arg in args), **kwargs)

    return dot_scaled


def _values(handle: Handle) -> Array:
    return widen(handle.data, handle.dtype.scalar.name)


def _unpacked(handle: Handle, kind: Any, axis: int) -> Array:
    """Return the values, e2m1's two to a byte (the low half first) laid out along `axis`."""
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
