"""What conversions between number formats compute, in numpy.

Source: AMD, "AMD Instinct MI300 Instruction Set Architecture", chapters of VOP1 and VOP3.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.gpu.machine.integer_rows import U32, part
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import Array


def _whole(x: Array, low: int, high: int) -> Array:
    """Towards zero, NaN to 0, the ends of the range for what lies outside."""
    return np.clip(np.where(np.isnan(x), 0, np.trunc(x.astype(np.float64))), low, high).astype(np.int64)


S32, UN32 = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1)
S16, UN16 = (-(1 << 15), (1 << 15) - 1), (0, (1 << 16) - 1)


def _toward_zero(x: Array) -> Array:
    """fp16 by cutting the mantissa; NaNs become quiet."""
    with np.errstate(over="ignore"):
        near = x.astype(np.float16)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
    cut = np.where(beyond, np.nextafter(near, np.float16(0)), near).astype(np.float16)
    return (cut.view(np.uint16) | np.where(np.isnan(cut), 0x200, 0).astype(np.uint16)).view(np.float16)


def _two(low: Array, high: Array) -> Array:
    """Two 16-bit results in a register."""
    halves = [np.ascontiguousarray(x).view(np.uint16) if x.dtype.itemsize == 2 else x & 0xFFFF for x in (low, high)]
    return halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << U32(16)


def _normed(x: Array, most: int, low: float) -> Array:
    scaled = np.rint(np.clip(np.nan_to_num(x.astype(np.float32), nan=0.0), low, 1.0) * np.float32(most))
    return scaled.astype(np.int64)


def _saturated_bytes(x: Array) -> Array:
    halves = [(x >> U32(16 * n)).astype(np.uint16).view(np.int16) for n in range(2)]
    low, high = (np.clip(half, 0, 255).astype(np.uint32) for half in halves)
    return low | high << U32(8)


def rows() -> dict[str, Row]:
    def to(low_high: tuple[int, int]) -> Callable[[Array], Array]:
        return partial(_whole, low=low_high[0], high=low_high[1])

    def cast(dtype: Any) -> Callable[[Array], Array]:
        return lambda a: a.astype(dtype)

    f32, f64, f16 = np.float32, np.float64, np.float16
    found = {
        "v_cvt_f32_i32": Row("f32", ("i32",), cast(f32), "vop1"),
        "v_cvt_f32_u32": Row("f32", ("u32",), cast(f32), "vop1"),
        "v_cvt_i32_f32": Row("i32", ("f32",), to(S32), "vop1"),
        "v_cvt_u32_f32": Row("u32", ("f32",), to(UN32), "vop1"),
        "v_cvt_rpi_i32_f32": Row("i32", ("f32",), lambda a: _whole(np.floor(a + f32(0.5)), *S32), "vop1"),
        "v_cvt_flr_i32_f32": Row("i32", ("f32",), lambda a: _whole(np.floor(a), *S32), "vop1"),
        "v_cvt_f16_f32": Row("f16", ("f32",), cast(f16), "vop1"),
        "v_cvt_f32_f16": Row("f32", ("f16",), cast(f32), "vop1"),
        "v_cvt_f32_f64": Row("f32", ("f64",), cast(f32), "vop1"),
        "v_cvt_f64_f32": Row("f64", ("f32",), cast(f64), "vop1"),
        "v_cvt_f64_i32": Row("f64", ("i32",), cast(f64), "vop1"),
        "v_cvt_f64_u32": Row("f64", ("u32",), cast(f64), "vop1"),
        "v_cvt_i32_f64": Row("i32", ("f64",), to(S32), "vop1"),
        "v_cvt_u32_f64": Row("u32", ("f64",), to(UN32), "vop1"),
        "v_cvt_f16_u16": Row("f16", ("u16",), cast(f16), "vop1"),
        "v_cvt_f16_i16": Row("f16", ("i16",), cast(f16), "vop1"),
        "v_cvt_u16_f16": Row("u16", ("f16",), to(UN16), "vop1"),
        "v_cvt_i16_f16": Row("i16", ("f16",), to(S16), "vop1"),
        "v_cvt_norm_i16_f16": Row("i16", ("f16",), lambda a: _normed(a, 32767, -1.0), "vop1"),
        "v_cvt_norm_u16_f16": Row("u16", ("f16",), lambda a: _normed(a, 65535, 0.0), "vop1"),
        "v_pack_b32_f16": Row("u32", ("f16", "f16"), _two, "vop3"),
        "v_sat_pk_u8_i16": Row("u16", ("u32",), _saturated_bytes, "vop1"),
        "v_cvt_off_f32_i4": Row("f32", ("u32",), lambda a: (((a & U32(15)).astype(f32) + 8) % 16 - 8) / 16, "vop1"),
        "v_cvt_pkrtz_f16_f32": Row("u32", ("f32", "f32"), lambda a, b: _two(_toward_zero(a), _toward_zero(b)), "vop3"),
        "v_cvt_pk_u16_u32": Row(
            "u32", ("u32",) * 2, lambda a, b: _two(np.minimum(a, 65535), np.minimum(b, 65535)), "vop3"
        ),
        "v_cvt_pk_i16_i32": Row("u32", ("i32",) * 2, lambda a, b: _two(np.clip(a, *S16), np.clip(b, *S16)), "vop3"),
    }
    for n in range(4):
        found[f"v_cvt_f32_ubyte{n}"] = Row("f32", ("u32",), lambda a, n=n: part(a, n, 8).astype(f32), "vop1")
    for t in ("f32", "f16"):
        found |= {
            f"v_cvt_pknorm_i16_{t}": Row(
                "u32", (t, t), lambda a, b: _two(_normed(a, 32767, -1.0), _normed(b, 32767, -1.0)), "vop3"
            ),
            f"v_cvt_pknorm_u16_{t}": Row(
                "u32", (t, t), lambda a, b: _two(_normed(a, 65535, 0.0), _normed(b, 65535, 0.0)), "vop3"
            ),
        }
    return found
