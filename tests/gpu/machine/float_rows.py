"""What vector instructions on floating-point numbers compute, in numpy, from the text of AMD's ISA documents.

Source: AMD, "AMD Instinct MI300 Instruction Set Architecture", chapters of VOP1, VOP2 and VOP3.
"""

import ctypes
import ctypes.util
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import DTYPE, Array

_LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
for _name, _type in (("fma", ctypes.c_double), ("fmaf", ctypes.c_float)):
    getattr(_LIBM, _name).argtypes, getattr(_LIBM, _name).restype = (_type,) * 3, _type


def _odd(n: int) -> float:
    """An integer in 53 bits, its last bit set if anything is lost: rounding once more then rounds as if once."""
    size = n.bit_length() if n >= 0 else (-n).bit_length()
    if size <= 53:
        return float(n)
    cut = abs(n) >> size - 53 | bool(abs(n) & ((1 << size - 53) - 1))
    return float(cut << size - 53) * (-1 if n < 0 else 1)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding."""
    if a.dtype != np.float16:
        one = np.frompyfunc(_LIBM.fmaf if a.dtype == np.float32 else _LIBM.fma, 3, 1)
        return one(a, b, c).astype(a.dtype)
    plain = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float16)
    for n in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        x, y, z = (int(float(value[n]) * 2.0**24) for value in (a, b, c))
        if (total := x * y + (z << 24)) != 0:
            plain[n] = np.float64(_odd(total) * 2.0**-48).astype(np.float16)
    return plain


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def _mantissa(x: Array) -> int:
    return {2: 10, 4: 23, 8: 52}[x.dtype.itemsize]


def signalling(x: Array) -> Array:
    return np.isnan(x) & ((_bits(x) >> (_mantissa(x) - 1) & 1) == 0)


def least(a: Array, b: Array) -> Array:
    """The smaller number; of NaN and a number the number, unless the NaN signals (IEEE mode); -0 is below +0."""
    lower = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return _without_nan(a, b, lower)


def most(a: Array, b: Array) -> Array:
    """The larger number, with the same rules."""
    upper = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return _without_nan(a, b, upper)


def _without_nan(a: Array, b: Array, found: Array) -> Array:
    found = np.where(np.isnan(a), b, np.where(np.isnan(b), a, found))
    return np.where(signalling(a) | signalling(b), np.array(np.nan, a.dtype), found)


def middle(a: Array, b: Array, c: Array) -> Array:
    """The median; with a NaN among them the smallest."""
    top = most(most(a, b), c)
    of_numbers = np.where(top == a, most(b, c), np.where(top == b, most(a, c), most(a, b)))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, least(least(a, b), c), of_numbers)


def _flushed(x: Array) -> Array:
    tiny = np.abs(x) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), x), x)


def _by_f64(f: Callable[[Array], Array], flush: bool = False) -> Callable[[Array], Array]:
    def made(x: Array) -> Array:
        wide = (_flushed(x) if flush and x.dtype == np.float32 else x).astype(np.longdouble)
        found = np.asarray(f(wide)).astype(x.dtype)
        return _flushed(found) if flush and x.dtype == np.float32 else found

    return made


def _fraction(x: Array) -> Array:
    below = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    part = (x.astype(np.longdouble) - np.floor(x.astype(np.longdouble))).astype(x.dtype)
    return np.where(part >= 1, below, part)


def _turns(f: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Sine or cosine of revolutions: the valid domain is -256 to 256."""

    def made(x: Array) -> Array:
        turn = np.remainder(x.astype(np.float64), 1.0)
        return f(2 * np.pi * turn).astype(x.dtype)

    return made


def _exponent(x: Array) -> Array:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(np.int32)


def _scaled(x: Array, by: Array) -> Array:
    """x * 2**by, rounded once: the power is split so that no step but the last rounds."""
    wide = np.ldexp(x.astype(np.longdouble), np.clip(by.astype(np.int64), -5000, 5000).astype(np.int32))
    return wide.astype(x.dtype)


def _legacy(a: Array, b: Array) -> Array:
    return np.where((a == 0) | (b == 0), np.float32(0), a * b)


def inverse_of_half_pi(bits: int) -> int:
    """2 / pi as a whole number of 2**-bits, from Machin's formula for pi."""
    one = 1 << bits + 64

    def arctangent(n: int) -> int:
        power, total, k = one // n, 0, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // (n * n), k + 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * one << bits) // pi


@functools.cache
def _inverse() -> int:
    return inverse_of_half_pi(1201)


def _part_of_inverse(a: Array, n: Array) -> Array:
    """53 bits of 2 / pi."""
    found = np.zeros(a.shape)
    for place, (x, segment) in enumerate(zip(a, n, strict=True)):
        exponent = int(np.float64(x).view(np.uint64)) >> 52 & 2047
        shift = (int(segment) & 31) * 53 + max(exponent - 1077, 0)
        digits = (_inverse() << shift) % (1 << 1201) >> 1201 - 53
        found[place] = np.ldexp(float(digits), -53 - shift + (128 if exponent >= 1968 else 0))
    return found


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for t in ("f16", "f32", "f64"):
        two, three = (t, t), (t, t, t)
        form = "vop3" if t == "f64" else "vop2"
        found |= {
            f"v_add_{t}": Row(t, two, lambda a, b: a + b, form),
            f"v_mul_{t}": Row(t, two, lambda a, b: a * b, form),
            f"v_min_{t}": Row(t, two, least, form),
            f"v_max_{t}": Row(t, two, most, form),
            f"v_fma_{t}": Row(t, three, fma, "vop3", keeps_high=t == "f16"),
            f"v_trunc_{t}": Row(t, (t,), np.trunc, "vop1"),
            f"v_ceil_{t}": Row(t, (t,), np.ceil, "vop1"),
            f"v_floor_{t}": Row(t, (t,), np.floor, "vop1"),
            f"v_rndne_{t}": Row(t, (t,), np.rint, "vop1"),
            f"v_fract_{t}": Row(t, (t,), _fraction, "vop1"),
            f"v_frexp_mant_{t}": Row(
                t, (t,), lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a).astype(a.dtype), "vop1"
            ),
            f"v_rcp_{t}": Row(t, (t,), _by_f64(lambda x: 1 / x, True), "vop1", ulps=1),
            f"v_rsq_{t}": Row(t, (t,), _by_f64(lambda x: 1 / np.sqrt(x), True), "vop1", ulps=1),
            f"v_sqrt_{t}": Row(t, (t,), _by_f64(np.sqrt, True), "vop1", ulps=1),
        }
        exponents = {"f16": ("v_frexp_exp_i16_f16", "i16"), "f32": ("v_frexp_exp_i32_f32", "i32")}
        name, whole = exponents.get(t, ("v_frexp_exp_i32_f64", "i32"))
        found[name] = Row(whole, (t,), _exponent, "vop1")
        found[f"v_ldexp_{t}"] = Row(t, (t, "i16" if t == "f16" else "i32"), _scaled, "vop2" if t == "f16" else "vop3")
    for t in ("f16", "f32"):
        two, three = (t, t), (t, t, t)
        found |= {
            f"v_sub_{t}": Row(t, two, lambda a, b: a - b, "vop2"),
            f"v_subrev_{t}": Row(t, two, lambda a, b: b - a, "vop2"),
            f"v_min3_{t}": Row(t, three, lambda a, b, c: least(least(a, b), c), "vop3", high_unknown=t == "f16"),
            f"v_max3_{t}": Row(t, three, lambda a, b, c: most(most(a, b), c), "vop3", high_unknown=t == "f16"),
            f"v_med3_{t}": Row(t, three, middle, "vop3", high_unknown=t == "f16"),
            f"v_exp_{t}": Row(t, (t,), _by_f64(np.exp2, True), "vop1", ulps=1),
            f"v_log_{t}": Row(t, (t,), _by_f64(np.log2, True), "vop1", ulps=1),
            f"v_sin_{t}": Row(t, (t,), _turns(np.sin), "vop1", ulps=2, absolute=2e-7, within=256.0),
            f"v_cos_{t}": Row(t, (t,), _turns(np.cos), "vop1", ulps=2, absolute=2e-7, within=256.0),
        }
    found |= {
        "v_rcp_iflag_f32": Row("f32", ("f32",), _by_f64(lambda x: 1 / x, True), "vop1", ulps=1),
        "v_mul_legacy_f32": Row("f32", ("f32", "f32"), _legacy, "vop3"),
        "v_mad_f16": Row("f16", ("f16",) * 3, lambda a, b, c: a * b + c, "vop3", keeps_high=True),
        "v_mad_legacy_f16": Row("f16", ("f16",) * 3, lambda a, b, c: a * b + c, "vop3"),
        "v_fma_legacy_f16": Row("f16", ("f16",) * 3, fma, "vop3"),
        "v_exp_legacy_f32": Row("f32", ("f32",), _by_f64(np.exp2, True), "vop1", ulps=1),
        "v_log_legacy_f32": Row("f32", ("f32",), _by_f64(np.log2, True), "vop1", ulps=1),
        "v_trig_preop_f64": Row("f64", ("f64", "u32"), _part_of_inverse, "vop3"),
    }
    return found


assert set(DTYPE) >= {"f16", "f32", "f64"}
