"""What scalar instructions compute, on Python's integers, from AMD's ISA document (SOP1, SOP2, SOPC, SOPK)."""

from collections.abc import Callable
from dataclasses import dataclass

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def s(x: int, bits: int = 32) -> int:
    """Read as a signed number."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


@dataclass(frozen=True)
class Scalar:
    """One instruction."""

    to: int
    """Bits of the destination, 0 for none."""
    sources: tuple[int, ...]
    """Bits of each source; -16 for a constant of 16 bits in the instruction."""
    compute: Callable[..., int | None]
    """Of the sources as unsigned numbers, SCC and, where `onto`, the former destination; None: not written."""
    scc: Callable[..., bool] | str = "kept"
    """`kept`, `result` (it is not zero), or of the same arguments."""
    onto: bool = False


def _bits(x: int, bits: int) -> str:
    return f"{x & ((1 << bits) - 1):0{bits}b}"


def _first(x: int, bits: int, digit: str) -> int:
    return _bits(x, bits)[::-1].find(digit)


def _last(x: int, bits: int, digit: str = "1") -> int:
    return _bits(x, bits).find(digit)


def _after_sign(x: int, bits: int) -> int:
    text = _bits(x, bits)
    return next((n for n in range(1, bits) if text[n] != text[0]), -1)


def _field(x: int, where: int, bits: int) -> int:
    return x >> (where & (bits - 1)) & ((1 << (where >> 16 & 127)) - 1) & ((1 << bits) - 1)


def _signed_field(x: int, where: int, bits: int) -> int:
    width = min(where >> 16 & 127, bits)
    part = s(x, bits) >> (where & (bits - 1)) & ((1 << width) - 1)
    return s(part, width) if width else 0


def _quads(x: int, bits: int) -> list[bool]:
    return [x >> n & 15 != 0 for n in range(0, bits, 4)]


def _logic(bits: int) -> dict[str, Scalar]:
    both, most, b = (bits, bits), bits - 1, f"b{bits}"
    two: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, x: a & x, "or": lambda a, x: a | x, "xor": lambda a, x: a ^ x, "andn2": lambda a, x: a & ~x,
        "orn2": lambda a, x: a | ~x, "nand": lambda a, x: ~(a & x), "nor": lambda a, x: ~(a | x),
        "xnor": lambda a, x: ~(a ^ x),
    }  # fmt: skip
    found = {f"s_{n}_{b}": Scalar(bits, both, lambda a, x, _c, f=f: f(a, x), "result") for n, f in two.items()}
    return found | {
        f"s_not_{b}": Scalar(bits, (bits,), lambda a, _c: ~a, "result"),
        f"s_wqm_{b}": Scalar(
            bits, (bits,), lambda a, _c: sum(15 << 4 * n for n, q in enumerate(_quads(a, bits)) if q), "result"
        ),
        f"s_quadmask_{b}": Scalar(
            bits, (bits,), lambda a, _c: sum(1 << n for n, q in enumerate(_quads(a, bits)) if q), "result"
        ),
        f"s_lshl_{b}": Scalar(bits, (bits, 32), lambda a, n, _c: a << (n & most), "result"),
        f"s_lshr_{b}": Scalar(bits, (bits, 32), lambda a, n, _c: a >> (n & most), "result"),
        f"s_ashr_i{bits}": Scalar(bits, (bits, 32), lambda a, n, _c: s(a, bits) >> (n & most), "result"),
        f"s_mov_{b}": Scalar(bits, (bits,), lambda a, _c: a),
        f"s_brev_{b}": Scalar(bits, (bits,), lambda a, _c: int(_bits(a, bits)[::-1], 2)),
        f"s_bfm_{b}": Scalar(bits, (32, 32), lambda a, n, _c: ((1 << (a & most)) - 1) << (n & most)),
        f"s_ff1_i32_{b}": Scalar(32, (bits,), lambda a, _c: _first(a, bits, "1")),
        f"s_ff0_i32_{b}": Scalar(32, (bits,), lambda a, _c: _first(a, bits, "0")),
        f"s_flbit_i32_{b}": Scalar(32, (bits,), lambda a, _c: _last(a, bits)),
        f"s_flbit_i32{'_i64' if bits == 64 else ''}": Scalar(32, (bits,), lambda a, _c: _after_sign(a, bits)),
        f"s_bcnt1_i32_{b}": Scalar(32, (bits,), lambda a, _c: a.bit_count(), "result"),
        f"s_bcnt0_i32_{b}": Scalar(32, (bits,), lambda a, _c: bits - a.bit_count(), "result"),
        f"s_bfe_u{bits}": Scalar(bits, (bits, 32), lambda a, n, _c: _field(a, n, bits), "result"),
        f"s_bfe_i{bits}": Scalar(bits, (bits, 32), lambda a, n, _c: _signed_field(a, n, bits), "result"),
        f"s_cselect_{b}": Scalar(bits, both, lambda a, x, c: a if c else x),
        f"s_cmov_{b}": Scalar(bits, (bits,), lambda a, c: a if c else None),
        f"s_bitset1_{b}": Scalar(bits, (32,), lambda n, _c, old: old | 1 << (n & most), onto=True),
        f"s_bitset0_{b}": Scalar(bits, (32,), lambda n, _c, old: old & ~(1 << (n & most)), onto=True),
        f"s_bitcmp1_{b}": Scalar(0, (bits, 32), lambda *_: None, lambda a, n, _c: a >> (n & most) & 1 == 1),
        f"s_bitcmp0_{b}": Scalar(0, (bits, 32), lambda *_: None, lambda a, n, _c: a >> (n & most) & 1 == 0),
    }


def _outside(exact: int) -> bool:
    return not -(1 << 31) <= exact < 1 << 31


def _arithmetic() -> dict[str, Scalar]:
    two = (32, 32)
    found = {
        "s_add_u32": Scalar(32, two, lambda a, b, _c: a + b, lambda a, b, _c: a + b > M32),
        "s_sub_u32": Scalar(32, two, lambda a, b, _c: a - b, lambda a, b, _c: b > a),
        "s_addc_u32": Scalar(32, two, lambda a, b, c: a + b + c, lambda a, b, c: a + b + c > M32),
        "s_subb_u32": Scalar(32, two, lambda a, b, c: a - b - c, lambda a, b, c: b + c > a),
        "s_add_i32": Scalar(32, two, lambda a, b, _c: a + b, lambda a, b, _c: _outside(s(a) + s(b))),
        "s_sub_i32": Scalar(32, two, lambda a, b, _c: a - b, lambda a, b, _c: _outside(s(a) - s(b))),
        "s_mul_i32": Scalar(32, two, lambda a, b, _c: a * b),
        "s_mul_hi_u32": Scalar(32, two, lambda a, b, _c: a * b >> 32),
        "s_mul_hi_i32": Scalar(32, two, lambda a, b, _c: s(a) * s(b) >> 32),
        "s_min_u32": Scalar(32, two, lambda a, b, _c: min(a, b), lambda a, b, _c: a < b),
        "s_max_u32": Scalar(32, two, lambda a, b, _c: max(a, b), lambda a, b, _c: a >= b),
        "s_min_i32": Scalar(32, two, lambda a, b, _c: min(s(a), s(b)), lambda a, b, _c: s(a) < s(b)),
        "s_max_i32": Scalar(32, two, lambda a, b, _c: max(s(a), s(b)), lambda a, b, _c: s(a) >= s(b)),
        "s_abs_i32": Scalar(32, (32,), lambda a, _c: abs(s(a)), "result"),
        "s_absdiff_i32": Scalar(32, two, lambda a, b, _c: abs(s(a - b)), "result"),
        "s_sext_i32_i16": Scalar(32, (32,), lambda a, _c: s(a, 16)),
        "s_sext_i32_i8": Scalar(32, (32,), lambda a, _c: s(a, 8)),
        "s_pack_ll_b32_b16": Scalar(32, two, lambda a, b, _c: a & 0xFFFF | (b & 0xFFFF) << 16),
        "s_pack_lh_b32_b16": Scalar(32, two, lambda a, b, _c: a & 0xFFFF | b >> 16 << 16),
        "s_pack_hh_b32_b16": Scalar(32, two, lambda a, b, _c: a >> 16 | b >> 16 << 16),
        "s_bitreplicate_b64_b32": Scalar(64, (32,), lambda a, _c: int("".join(2 * d for d in _bits(a, 32)), 2)),
        "s_movk_i32": Scalar(32, (-16,), lambda k, _c: s(k, 16)),
        "s_cmovk_i32": Scalar(32, (-16,), lambda k, c: s(k, 16) if c else None),
        "s_addk_i32": Scalar(
            32, (-16,), lambda k, _c, old: old + s(k, 16), lambda k, _c, old: _outside(s(old) + s(k, 16)), onto=True
        ),
        "s_mulk_i32": Scalar(32, (-16,), lambda k, _c, old: old * s(k, 16), onto=True),
    }
    for n in range(1, 5):
        found[f"s_lshl{n}_add_u32"] = Scalar(
            32, two, lambda a, b, _c, n=n: (a << n) + b, lambda a, b, _c, n=n: (a << n) + b > M32
        )
    return found


_CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip


def _comparisons() -> dict[str, Scalar]:
    found = {}
    for name, rule in _CONDITIONS.items():
        found |= {
            f"s_cmp_{name}_u32": Scalar(0, (32, 32), lambda *_: None, lambda a, b, _c, f=rule: f(a, b)),
            f"s_cmp_{name}_i32": Scalar(0, (32, 32), lambda *_: None, lambda a, b, _c, f=rule: f(s(a), s(b))),
            f"s_cmpk_{name}_u32": Scalar(0, (32, -16), lambda *_: None, lambda a, k, _c, f=rule: f(a, k)),
            f"s_cmpk_{name}_i32": Scalar(0, (32, -16), lambda *_: None, lambda a, k, _c, f=rule: f(s(a), s(k, 16))),
        }
        if name in ("eq", "lg"):
            found[f"s_cmp_{name}_u64"] = Scalar(0, (64, 64), lambda *_: None, lambda a, b, _c, f=rule: f(a, b))
    return found


def rows() -> dict[str, Scalar]:
    return _logic(32) | _logic(64) | _arithmetic() | _comparisons()


SAVES: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, e: a & e, "or": lambda a, e: a | e, "xor": lambda a, e: a ^ e, "andn2": lambda a, e: a & ~e,
    "orn2": lambda a, e: a | ~e, "nand": lambda a, e: ~(a & e), "nor": lambda a, e: ~(a | e),
    "xnor": lambda a, e: ~(a ^ e), "andn1": lambda a, e: ~a & e, "orn1": lambda a, e: ~a | e,
}  # fmt: skip
"""EXEC after `s_..._saveexec_b64` of a source and the former EXEC."""
WRITES = {name: SAVES[name] for name in ("andn1", "andn2")}
"""The same for `s_..._wrexec_b64`, which write the new EXEC to the destination."""
