"""What vector instructions on integers and bits compute, in numpy.

Source: AMD, "AMD Instinct MI300 Instruction Set Architecture", chapters of VOP1, VOP2 and VOP3.
"""

from collections.abc import Callable

import numpy as np

from tests.gpu.machine.float_rows import fma
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import Array

U32 = np.uint32


def _wide(f: Callable[..., Array]) -> Callable[..., Array]:
    """Compute on exact 64-bit numbers."""
    return lambda *x: f(*(a.astype(np.int64) for a in x))


def _low24(x: Array) -> Array:
    return x.astype(np.int64) & 0xFFFFFF


def _signed24(x: Array) -> Array:
    low = _low24(x)
    return low - ((low >> 23) << 24)


def _shift(x: Array, by: Array, most: int, left: bool) -> Array:
    by = (by & by.dtype.type(most)).astype(x.dtype)
    return np.left_shift(x, by) if left else np.right_shift(x, by)


def _leading(x: Array) -> Array:
    """Zeros before the first one, or -1."""
    return np.array([32 - int(n).bit_length() if n else -1 for n in x], np.int32)


def _trailing(x: Array) -> Array:
    return np.array([(int(n) & -int(n)).bit_length() - 1 for n in x], np.int32)


def _leading_signed(x: Array) -> Array:
    return _leading(np.where(x < 0, ~x, x).astype(np.uint32))


def _ones(x: Array) -> Array:
    return np.bitwise_count(x).astype(np.uint32)


def _reversed(x: Array) -> Array:
    return np.array([int(f"{int(n):032b}"[::-1], 2) for n in x], np.uint32)


def _field(x: Array, at: Array, width: Array) -> Array:
    return np.right_shift(x, (at & U32(31)).astype(x.dtype)) & ((1 << (width & U32(31)).astype(np.int64)) - 1)


def _signed_field(x: Array, at: Array, width: Array) -> Array:
    width = (width & U32(31)).astype(np.int64)
    part = _field(x.astype(np.int64), at, width.astype(np.uint32)) & ((1 << width) - 1)
    return np.where(width > 0, part - ((part >> np.maximum(width - 1, 0) & 1) << width), 0)


def _align(a: Array, b: Array, by: Array) -> Array:
    both = a.astype(np.uint64) << np.uint64(32) | b
    return (both >> by.astype(np.uint64)).astype(np.uint32)


def _byte_of(pair: Array, selector: Array) -> Array:
    plain = pair >> (np.minimum(selector, 7) * 8).astype(np.uint64) & np.uint64(255)
    sign_of = np.clip(selector.astype(np.int64) - 8, 0, 3) * 16 + 15
    sign = (pair >> sign_of.astype(np.uint64) & np.uint64(1)) * np.uint64(255)
    special = np.where(selector < 12, sign, np.where(selector == 12, 0, 255))
    return np.where(selector < 8, plain, special).astype(np.uint32)


def _permuted(a: Array, b: Array, selectors: Array) -> Array:
    pair = a.astype(np.uint64) << np.uint64(32) | b
    return sum((_byte_of(pair, selectors >> U32(8 * n) & U32(255)) << U32(8 * n) for n in range(4)), np.uint32(0))


def _distance(a: Array, b: Array) -> Array:
    return np.abs(a.astype(np.int64) - b.astype(np.int64))


def part(x: Array, n: int, bits: int) -> Array:
    return x >> U32(n * bits) & U32((1 << bits) - 1)


def _sum_of_distances(a: Array, b: Array, bits: int = 8, masked: bool = False) -> Array:
    parts = []
    for n in range(32 // bits):
        x, y = part(a, n, bits), part(b, n, bits)
        parts.append(np.where(y == 0, 0, _distance(x, y)) if masked else _distance(x, y))
    return sum(parts, np.int64(0))


def _average(a: Array, b: Array, c: Array) -> Array:
    out = np.zeros_like(a)
    for n in range(4):
        out |= ((part(a, n, 8) + part(b, n, 8) + (c >> U32(8 * n) & U32(1))) >> U32(1)) << U32(8 * n)
    return out


def _middle(a: Array, b: Array, c: Array) -> Array:
    return np.sort(np.stack([a, b, c]), 0)[1]


def _dot(bits: int, signed: bool) -> Callable[..., Array]:
    def number(x: Array, n: int) -> Array:
        value = part(x, n, bits).astype(np.int64)
        return value - ((value >> (bits - 1)) << bits) if signed else value

    return lambda a, b, c: (
        sum((number(a, n) * number(b, n) for n in range(32 // bits)), np.int64(0)) + c.astype(np.int64)
    )


def _dot_f16(a: Array, b: Array, c: Array) -> Array:
    halves = [[part(x, n, 16).astype(np.uint16).view(np.float16).astype(np.float64) for n in range(2)] for x in (a, b)]
    return (halves[0][0] * halves[1][0] + halves[0][1] * halves[1][1] + c).astype(np.float32)


def rows() -> dict[str, Row]:
    return _arithmetic() | _words() | _bitwise() | _sums()


def _arithmetic() -> dict[str, Row]:
    u2, u3, i2, i3 = ("u32",) * 2, ("u32",) * 3, ("i32",) * 2, ("i32",) * 3
    plus, minus = _wide(lambda a, b: a + b), _wide(lambda a, b: a - b)
    found = {
        "v_add_u32": Row("u32", u2, plus, "vop2", saturates=True),
        "v_sub_u32": Row("u32", u2, minus, "vop2", saturates=True),
        "v_subrev_u32": Row("u32", u2, _wide(lambda a, b: b - a), "vop2", saturates=True),
        "v_add_i32": Row("i32", i2, plus, "vop3", saturates=True),
        "v_sub_i32": Row("i32", i2, minus, "vop3", saturates=True),
        "v_mul_lo_u32": Row("u32", u2, lambda a, b: a * b, "vop3"),
        "v_mul_hi_u32": Row("u32", u2, lambda a, b: a.astype(np.uint64) * b >> np.uint64(32), "vop3"),
        "v_mul_hi_i32": Row("i32", i2, lambda a, b: a.astype(np.int64) * b >> 32, "vop3"),
        "v_mul_u32_u24": Row("u32", u2, lambda a, b: _low24(a) * _low24(b), "vop2"),
        "v_mul_hi_u32_u24": Row("u32", u2, lambda a, b: _low24(a) * _low24(b) >> 32, "vop2"),
        "v_mul_i32_i24": Row("i32", i2, lambda a, b: _signed24(a) * _signed24(b), "vop2"),
        "v_mul_hi_i32_i24": Row("i32", i2, lambda a, b: _signed24(a) * _signed24(b) >> 32, "vop2"),
        "v_mad_u32_u24": Row(
            "u32", u3, lambda a, b, c: _low24(a) * _low24(b) + c.astype(np.int64), "vop3", saturates=True
        ),
        "v_mad_i32_i24": Row("i32", i3, lambda a, b, c: _signed24(a) * _signed24(b) + c, "vop3", saturates=True),
        "v_mad_u32_u16": Row("u32", ("u16", "u16", "u32"), _wide(lambda a, b, c: a * b + c), "vop3", saturates=True),
        "v_mad_i32_i16": Row("i32", ("i16", "i16", "i32"), _wide(lambda a, b, c: a * b + c), "vop3", saturates=True),
        "v_add3_u32": Row("u32", u3, lambda a, b, c: a + b + c, "vop3"),
        "v_lshl_add_u32": Row("u32", u3, lambda a, b, c: _shift(a, b, 31, True) + c, "vop3"),
        "v_add_lshl_u32": Row("u32", u3, lambda a, b, c: _shift(a + b, c, 31, True), "vop3"),
        "v_xad_u32": Row("u32", u3, lambda a, b, c: (a ^ b) + c, "vop3"),
        "v_lshl_add_u64": Row(
            "u64", ("u64", "u32", "u64"), lambda a, b, c: _shift(a, np.where(b % 8 > 4, 0, b), 7, True) + c, "vop3"
        ),
    }
    for t in ("u32", "i32"):
        found |= {
            f"v_min_{t}": Row(t, (t, t), np.minimum, "vop2"),
            f"v_max_{t}": Row(t, (t, t), np.maximum, "vop2"),
        }
    for t in ("u32", "i32", "u16", "i16"):
        high = t.endswith("16")
        found |= {
            f"v_min3_{t}": Row(t, (t,) * 3, lambda a, b, c: np.minimum(np.minimum(a, b), c), "vop3", high_unknown=high),
            f"v_max3_{t}": Row(t, (t,) * 3, lambda a, b, c: np.maximum(np.maximum(a, b), c), "vop3", high_unknown=high),
            f"v_med3_{t}": Row(t, (t,) * 3, _middle, "vop3", high_unknown=high),
        }
    return found


def _words() -> dict[str, Row]:
    plus, minus = _wide(lambda a, b: a + b), _wide(lambda a, b: a - b)
    u, i = ("u16", "u16"), ("i16", "i16")
    found = {
        "v_add_u16": Row("u16", u, plus, "vop2", saturates=True),
        "v_sub_u16": Row("u16", u, minus, "vop2", saturates=True),
        "v_subrev_u16": Row("u16", u, _wide(lambda a, b: b - a), "vop2", saturates=True),
        "v_mad_legacy_u16": Row("u16", ("u16",) * 3, _wide(lambda a, b, c: a * b + c), "vop3", saturates=True),
        "v_mad_legacy_i16": Row("i16", ("i16",) * 3, _wide(lambda a, b, c: a * b + c), "vop3", saturates=True),
        "v_add_i16": Row("i16", i, plus, "vop3", saturates=True, high_unknown=True),
        "v_sub_i16": Row("i16", i, minus, "vop3", saturates=True, high_unknown=True),
        "v_mul_lo_u16": Row("u16", u, lambda a, b: a * b, "vop2"),
        "v_mad_u16": Row(
            "u16", ("u16",) * 3, _wide(lambda a, b, c: a * b + c), "vop3", saturates=True, keeps_high=True
        ),
        "v_mad_i16": Row(
            "i16", ("i16",) * 3, _wide(lambda a, b, c: a * b + c), "vop3", saturates=True, keeps_high=True
        ),
        "v_lshlrev_b16": Row("u16", u, lambda a, b: _shift(b, a, 15, True), "vop2"),
        "v_lshrrev_b16": Row("u16", u, lambda a, b: _shift(b, a, 15, False), "vop2"),
        "v_ashrrev_i16": Row("i16", ("u16", "i16"), lambda a, b: _shift(b, a, 15, False), "vop2"),
    }
    for t in ("u16", "i16"):
        found |= {
            f"v_min_{t}": Row(t, (t, t), np.minimum, "vop2"),
            f"v_max_{t}": Row(t, (t, t), np.maximum, "vop2"),
        }
    return found


def _bitwise() -> dict[str, Row]:
    u1, u2, u3 = ("u32",), ("u32",) * 2, ("u32",) * 3
    return {
        "v_mov_b32": Row("u32", u1, lambda a: a, "vop1"),
        "v_mov_b64": Row("u64", ("u64",), lambda a: a, "vop1"),
        "v_not_b32": Row("u32", u1, lambda a: ~a, "vop1"),
        "v_bfrev_b32": Row("u32", u1, _reversed, "vop1"),
        "v_ffbh_u32": Row("i32", u1, _leading, "vop1"),
        "v_ffbl_b32": Row("i32", u1, _trailing, "vop1"),
        "v_ffbh_i32": Row("i32", ("i32",), _leading_signed, "vop1"),
        "v_and_b32": Row("u32", u2, lambda a, b: a & b, "vop2"),
        "v_or_b32": Row("u32", u2, lambda a, b: a | b, "vop2"),
        "v_xor_b32": Row("u32", u2, lambda a, b: a ^ b, "vop2"),
        "v_xnor_b32": Row("u32", u2, lambda a, b: ~(a ^ b), "vop2"),
        "v_lshlrev_b32": Row("u32", u2, lambda a, b: _shift(b, a, 31, True), "vop2"),
        "v_lshrrev_b32": Row("u32", u2, lambda a, b: _shift(b, a, 31, False), "vop2"),
        "v_ashrrev_i32": Row("i32", ("u32", "i32"), lambda a, b: _shift(b, a, 31, False), "vop2"),
        "v_lshlrev_b64": Row("u64", ("u32", "u64"), lambda a, b: _shift(b, a, 63, True), "vop3"),
        "v_lshrrev_b64": Row("u64", ("u32", "u64"), lambda a, b: _shift(b, a, 63, False), "vop3"),
        "v_ashrrev_i64": Row("i64", ("u32", "i64"), lambda a, b: _shift(b, a, 63, False), "vop3"),
        "v_bfe_u32": Row("u32", u3, _field, "vop3"),
        "v_bfe_i32": Row("i32", ("i32", "u32", "u32"), _signed_field, "vop3"),
        "v_bfi_b32": Row("u32", u3, lambda a, b, c: (a & b) | (~a & c), "vop3"),
        "v_bfm_b32": Row(
            "u32", u2, lambda a, b: _shift(_shift(U32(1) + 0 * a, a, 31, True) - U32(1), b, 31, True), "vop3"
        ),
        "v_bcnt_u32_b32": Row("u32", u2, lambda a, b: _ones(a) + b, "vop3"),
        "v_and_or_b32": Row("u32", u3, lambda a, b, c: (a & b) | c, "vop3"),
        "v_or3_b32": Row("u32", u3, lambda a, b, c: a | b | c, "vop3"),
        "v_lshl_or_b32": Row("u32", u3, lambda a, b, c: _shift(a, b, 31, True) | c, "vop3"),
        "v_alignbit_b32": Row("u32", u3, lambda a, b, c: _align(a, b, c & U32(31)), "vop3"),
        "v_alignbyte_b32": Row("u32", u3, lambda a, b, c: _align(a, b, (c & U32(3)) * U32(8)), "vop3"),
        "v_perm_b32": Row("u32", u3, _permuted, "vop3"),
        "v_lerp_u8": Row("u32", u3, _average, "vop3"),
    }


def _sums() -> dict[str, Row]:
    u3 = ("u32",) * 3
    sad = _sum_of_distances
    found = {
        "v_sad_u32": Row("u32", u3, lambda a, b, c: _distance(a, b) + c, "vop3"),
        "v_sad_u8": Row("u32", u3, lambda a, b, c: sad(a, b) + c, "vop3"),
        "v_sad_hi_u8": Row("u32", u3, lambda a, b, c: (sad(a, b) << 16) + c, "vop3"),
        "v_sad_u16": Row("u32", u3, lambda a, b, c: sad(a, b, 16) + c, "vop3"),
        "v_msad_u8": Row("u32", u3, lambda a, b, c: sad(a, b, 8, True) + c, "vop3"),
        "v_fmac_f32": Row("f32", ("f32",) * 2, fma, "vop2", onto=True),
        "v_fmac_f64": Row("f64", ("f64",) * 2, fma, "vop2", onto=True),
        "v_mac_f16": Row("f16", ("f16",) * 2, lambda a, b, c: a * b + c, "vop2", onto=True, high_unknown=True),
        "v_dot2c_f32_f16": Row("f32", ("pk", "pk"), _dot_f16, "vop2", onto=True, ulps=1 << 20, absolute=1e-2),
        "v_dot2c_i32_i16": Row("i32", ("u32", "u32"), _dot(16, True), "vop2", onto=True),
        "v_dot4c_i32_i8": Row("i32", ("u32", "u32"), _dot(8, True), "vop2", onto=True),
        "v_dot8c_i32_i4": Row("i32", ("u32", "u32"), _dot(4, True), "vop2", onto=True),
    }
    for name, bits, signed in (
        ("4_i32_i8", 8, True),
        ("4_u32_u8", 8, False),
        ("8_i32_i4", 4, True),
        ("8_u32_u4", 4, False),
    ):
        t = "i32" if signed else "u32"
        found[f"v_dot{name}"] = Row(t, ("pk", "pk", t), _dot(bits, signed), "vop3p", saturates=True)
    for t, signed in (("i32", True), ("u32", False)):
        found[f"v_dot2_{t}_{t[0]}16"] = Row(t, ("pk", "pk", t), _dot(16, signed), "vop3p", saturates=True)
    return found
