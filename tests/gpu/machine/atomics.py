"""What atomic operations do to a place in memory, from the text of AMD's ISA document."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.gpu.machine.values import Array, corners

Rule = Callable[[Any, Any, Any], Any]
SIZES = {"u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8, "f16": 4, "bf16": 4}
"""Bytes; the 16-bit types come in pairs."""
_VIEW = {"u32": "u4", "i32": "i4", "f32": "f4", "u64": "u8", "i64": "i8", "f64": "f8", "f16": "f2", "bf16": "u2"}


def _more(x: Any, d: Any) -> Any:
    return type(x)(0) if x >= d else x + type(x)(1)


def _less(x: Any, d: Any) -> Any:
    return d if x == 0 or x > d else x - type(x)(1)


def _bf16_sum(x: Array, d: Array) -> Array:
    a, b = (torch.from_numpy(y.view(np.int16).copy()).view(torch.bfloat16) for y in (x, d))
    return (a.float() + b.float()).bfloat16().view(torch.int16).numpy().view(np.uint16)


WHOLE: dict[str, Rule] = {
    "add": lambda x, d, _: x + d,
    "sub": lambda x, d, _: x - d,
    "inc": lambda x, d, _: _more(x, d),
    "dec": lambda x, d, _: _less(x, d),
    "umin": lambda x, d, _: min(x, d),
    "umax": lambda x, d, _: max(x, d),
    "and": lambda x, d, _: x & d,
    "or": lambda x, d, _: x | d,
    "xor": lambda x, d, _: x ^ d,
    "swap": lambda x, d, _: d,
}
SUM: Rule = lambda x, d, _: x + d  # noqa: E731
LEAST: Rule = lambda x, d, _: d if d < x else x  # noqa: E731
MOST: Rule = lambda x, d, _: d if d > x else x  # noqa: E731


def of_lds() -> dict[str, tuple[str, Rule]]:
    """Type and rule by the name after ds_, without rtn. The first datum is compared, the second stored."""
    found: dict[str, tuple[str, Rule]] = {}
    for bits in ("32", "64"):
        u, i, b = f"u{bits}", f"i{bits}", f"b{bits}"
        found |= {f"{n}_{u}": (u, WHOLE[n]) for n in ("add", "sub", "inc", "dec")}
        found |= {f"{n}_{b}": (u, WHOLE[n]) for n in ("and", "or", "xor")}
        found |= {
            f"rsub_{u}": (u, lambda x, d, _: d - x),
            f"min_{u}": (u, WHOLE["umin"]),
            f"max_{u}": (u, WHOLE["umax"]),
            f"min_{i}": (i, WHOLE["umin"]),
            f"max_{i}": (i, WHOLE["umax"]),
            f"wrxchg_{b}": (u, WHOLE["swap"]),
            f"cmpst_{b}": (u, lambda x, d, e: e if x == d else x),
            f"mskor_{b}": (u, lambda x, d, e: x & ~d | e),
            f"min_f{bits}": (f"f{bits}", LEAST),
            f"max_f{bits}": (f"f{bits}", MOST),
            f"add_f{bits}": (f"f{bits}", SUM),
            f"cmpst_f{bits}": (f"f{bits}", lambda x, d, e: e if x == d else x),
        }
    return found | {"pk_add_f16": ("f16", SUM), "pk_add_bf16": ("bf16", lambda x, d, _: _bf16_sum(x, d))}


def of_memory() -> dict[str, tuple[str, Rule]]:
    """Type and rule by the name after `_atomic_`. The stored number is the first datum, the compared one the second."""
    found: dict[str, tuple[str, Rule]] = {}
    for bits, suffix in (("32", ""), ("64", "_x2")):
        found |= {f"{name}{suffix}": (f"u{bits}", rule) for name, rule in WHOLE.items()}
        found |= {
            f"smin{suffix}": (f"i{bits}", WHOLE["umin"]),
            f"smax{suffix}": (f"i{bits}", WHOLE["umax"]),
            f"cmpswap{suffix}": (f"u{bits}", lambda x, d, e: d if x == e else x),
        }
    return found | {
        "add_f32": ("f32", SUM),
        "add_f64": ("f64", SUM),
        "min_f64": ("f64", LEAST),
        "max_f64": ("f64", MOST),
        "pk_add_f16": ("f16", SUM),
        "pk_add_bf16": ("bf16", lambda x, d, _: _bf16_sum(x, d)),
    }


def corners_into(v: Array, content: Array, kind: str) -> None:
    """Give half of the lanes data at the corners of their type and, in every fourth place, equal numbers to compare."""
    random = np.random.default_rng(5)
    chosen = kind if kind[0] != "b" and kind != "f16" else "u32"
    known = corners(chosen)
    for register in (4, 6):
        picked = random.choice(known, v[:, 0, ::2].shape)
        v[:, register, ::2] = (picked & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        if SIZES[kind] == 8:
            v[:, register + 1, ::2] = (picked >> np.uint64(32)).astype(np.uint32)
    if kind[0] == "f" or kind == "bf16":  # no NaN: which of two is kept is not documented
        for register in (4, 5, 6, 7):
            v[:, register] &= np.uint32(0xBFFFBFFF)
        content &= np.uint8(0xBF)


def changed(
    content: Array, enabled: Array, places: Array, v: Array, data: tuple[int, int], kind: str, rule: Rule
) -> Array:
    """Change memory lane after lane; return what was there, shape (waves, 64, bytes)."""
    size, view = SIZES[kind], _VIEW[kind]
    old = np.zeros((*places.shape, size), np.uint8)
    given = [np.ascontiguousarray(np.moveaxis(v[:, n : n + size // 4], 1, 2)).view(view) for n in data]
    with np.errstate(all="ignore"):
        for wave, lane in np.argwhere(enabled):
            start = int(places[wave, lane])
            cell = content[wave, start : start + size].copy()
            old[wave, lane] = cell
            operands = [cell.view(view), *(x[wave, lane] for x in given)]
            if size // np.dtype(view).itemsize == 1:
                result = np.array([rule(*(x[0] for x in operands))]).astype(view)
            else:
                result = np.asarray(rule(*operands)).astype(view)
            content[wave, start : start + size] = result.view(np.uint8)
    return old
