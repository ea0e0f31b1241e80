"""Operands for tests: the corners of each type and random bits; and typed views of registers."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BITS = {"u32": 32, "i32": 32, "f32": 32, "f16": 16, "i16": 16, "u16": 16, "u64": 64, "i64": 64, "f64": 64, "pk": 32}
"""Width of each type; `pk` is a register with two halves."""
DTYPE = {
    "u32": np.uint32, "i32": np.int32, "f32": np.float32, "f16": np.float16, "i16": np.int16, "u16": np.uint16,
    "u64": np.uint64, "i64": np.int64, "f64": np.float64, "pk": np.uint32,
}  # fmt: skip
_F32 = (
    *(0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x40000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FA00001),
    *(1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x4B800001, 0x33800000),
    *(0x477FEFFF, 0x477FF000, 0x33000001, 0x38800000, 0x387FC000, 0x4F000000, 0xCF000000, 0x4F800000, 0x3EFFFFFF),
    *(0x40200000, 0xC0200000, 0x43780000, 0x3A000000),
)
_F16 = (
    *(0, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x4000, 0x7C00, 0xFC00, 0x7E00, 0x7D01, 1, 0x8001, 0x3FF, 0x400, 0x8400),
    *(0x7BFF, 0xFBFF, 0x7800, 0x6401, 0x1400, 0x37FF, 0x4100, 0xC100, 0x77FF, 0x7800),
)
_F64 = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(
        2.225073858507201e-308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        8.98846567431158e307,
        4503599627370497.0,
    ),
    *(2147483647.0, 2147483648.0, -2147483649.0, 4294967295.5, 3.4028235e38, 1e-40, 2.5, -2.5, 0.49999999999999994),
)
_INTEGERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000)


def corners(kind: str) -> Array:
    """Bits of the numbers at which rules change, as unsigned integers."""
    bits = BITS[kind]
    if kind == "f32":
        return np.array(_F32, np.uint64)
    if kind == "f16":
        return np.array(_F16, np.uint64)
    if kind == "f64":
        signalling = np.array([0x7FF4000000000001], np.uint64)
        return np.concatenate([np.array(_F64).view(np.uint64), signalling])
    most = (1 << bits) - 1
    found = {x & most for x in _INTEGERS} | {most - x & most for x in _INTEGERS}
    found |= {most >> 1, (most >> 1) + 1, most >> 8, (most >> 9) + 1, most // 3, most // 5, 0x7FFFFF, 0x800000}
    return np.array(sorted(x & most for x in found), np.uint64)


def tuples(kinds: tuple[str, ...], count: int, seed: int) -> list[Array]:
    """`count` tuples of operands: pairs of corners first, then a mixture of corners, moderate and random numbers."""
    random = np.random.default_rng(seed)
    found = []
    order = random.permutation(count)
    for place, kind in enumerate(kinds):
        known = corners(kind)
        chosen = known[random.integers(0, len(known), count)]
        step = 1
        for earlier in kinds[:place]:
            step *= len(corners(earlier))
        if step * len(known) <= count:  # all pairs fit
            whole = np.arange(step * len(known))
            chosen[: len(whole)] = known[whole // step]
        mixed = _any(kind, count, random)
        rare = np.arange(count) >= (len(known) if len(kinds) == 1 else len(known) ** 2)
        use = rare & (random.random(count) < 0.7)
        found.append(np.where(use, mixed, chosen)[order])
    return found


def _any(kind: str, count: int, random: np.random.Generator) -> Array:
    """Random bits; for floating-point numbers, half of them of moderate size."""
    bits = BITS[kind]
    raw = random.integers(0, 1 << 64, count, np.uint64) & np.uint64((1 << bits) - 1)
    if kind[0] != "f":
        return np.where(random.random(count) < 0.3, raw >> np.uint64(bits - bits // 3), raw)
    moderate = (random.standard_normal(count) * 10.0 ** random.integers(-3, 4, count)).astype(DTYPE[kind])
    unsigned = moderate.view(f"u{bits // 8}").astype(np.uint64)
    return np.where(random.random(count) < 0.5, unsigned, raw)


def typed(raw: Array, kind: str) -> Array:
    """Unsigned integers as numbers of a type; a type of 16 bits takes the lower half."""
    bits = BITS[kind]
    return (raw & np.uint64((1 << bits) - 1)).astype(f"u{bits // 8}").view(DTYPE[kind])


def raw(value: Array, kind: str) -> Array:
    """Numbers of a type as unsigned integers of 64 bits."""
    return np.ascontiguousarray(value.astype(DTYPE[kind], copy=False)).view(f"u{BITS[kind] // 8}").astype(np.uint64)
