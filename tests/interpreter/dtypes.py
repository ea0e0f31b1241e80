"""bf16 and fp8 as arrays of bits, which is how Triton's interpreter stores them.

Widening is exact. Narrowing rounds to nearest even. Values that are too large are treated as in Triton 3.7's code for
gfx942: the two FNUZ formats are converted by the hardware's `v_cvt_pk_fp8_f32` without clamping and become NaN, as with
torch's `.to`; the two OCP formats are converted in software and saturate, infinities too, while torch gives NaN or
infinity; bf16 and fp16 become infinity. Imports only numpy and torch.
"""

from functools import cache
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

TORCH: dict[str, torch.dtype] = {
    "bf16": torch.bfloat16,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}
"""torch's type by Triton's name of a format."""
SATURATING = {"fp8e4nv": 448.0, "fp8e5": 57344.0, "fp8e4b15": 1.875}
"""Largest value of each format that saturates."""
PACKED = frozenset((*TORCH, "fp8e4b15"))
"""Formats without a numpy type: the interpreter stores their bits."""

_NUMPY = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}


@cache
def _values(name: str) -> Array:
    """The 256 values of an fp8 format."""
    bits = np.arange(256, dtype=np.uint8)
    if name != "fp8e4b15":
        return torch.from_numpy(bits).view(TORCH[name]).to(torch.float32).numpy()
    exponent, fraction = (bits >> 3 & 15).astype(np.int32), (bits & 7).astype(np.float32)  # no infinities, no NaN
    magnitude = np.where(exponent == 0, np.ldexp(fraction, -17), np.ldexp(8 + fraction, exponent - 18))
    return np.where(bits & 128, -magnitude, magnitude).astype(np.float32)


def widen(bits: Array, name: str) -> Array:
    """Return the exact fp32 values of bf16 or fp8 bits; other types as they are."""
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return _values(name)[bits] if name in PACKED else bits


def narrow(values: Array, name: str, to_zero: bool = False) -> Array:
    """Round floating point values to a format and return its bits (or numpy's own type where it has one)."""
    if name in _NUMPY:
        with np.errstate(over="ignore", invalid="ignore"):
            nearest = values.astype(_NUMPY[name])
    else:
        nearest = _nearest(values, name)
    return _toward_zero(nearest, values, name) if to_zero else nearest


def _nearest(values: Array, name: str) -> Array:
    if name in SATURATING:
        values = np.clip(values, -SATURATING[name], SATURATING[name])
    if name == "fp8e4b15":
        return _nearest_e4b15(values)
    unsigned = torch.uint16 if name == "bf16" else torch.uint8
    flat = torch.from_numpy(np.ascontiguousarray(values)).reshape(-1)
    return flat.to(TORCH[name]).view(unsigned).numpy().reshape(values.shape)


def _nearest_e4b15(values: Array) -> Array:
    bits = np.abs(values).astype(np.float64)
    scale = np.ldexp(1.0, np.maximum(np.frexp(bits)[1] - 4, -17))
    rounded = np.rint(bits / scale) * scale
    table = _values("fp8e4b15")[:128]
    return (np.searchsorted(table, rounded).clip(0, 127) | np.signbit(values) * 128).astype(np.uint8)


def _toward_zero(nearest: Array, values: Array, name: str) -> Array:
    """Step back by one unit in the last place where rounding went away from zero."""
    with np.errstate(invalid="ignore"):
        over = np.abs(widen(nearest, name).astype(np.float64)) > np.abs(values.astype(np.float64))
    bits = nearest.view(f"u{nearest.dtype.itemsize}")
    stepped = bits - over.astype(bits.dtype)
    if name in ("fp8e4b8", "fp8e5b16"):
        stepped[over & (stepped == 0x80)] = 0  # these formats have one zero; 0x80 would be NaN
    return stepped.view(nearest.dtype)
