"""Random expressions that have one value in C++ on the host and in HIP on gfx942.

A lane's values are fields of a record: a letter for the type, and a digit: 0 loaded from memory, 1 computed, 2 received
from other lanes, 8 the same in all lanes of a workgroup, 9 the lane's number. All arithmetic is defined: integers wrap
(`-fwrapv`), shifts are masked, and numbers are clamped before they become integers or narrower.
"""

import random
import re
from collections.abc import Sequence
from types import MappingProxyType

TYPES = MappingProxyType({"i": "int", "f": "float", "w": "wide", "d": "double", "h": "short", "b": "byte", "z": "half"})
"""What the letters mean; the names that C++ lacks are those of `FUNCTIONS`."""
UNIFORM = ("i8", "f8", "w8", "d8")
FUNCTIONS = """
typedef long long wide; typedef unsigned long long mask; typedef unsigned char byte; typedef _Float16 half;
FN int hidden(int x);
FN wide hidden(wide x);
FN float hidden(float x);
FN double hidden(double x);
FN short hidden(short x);
FN byte hidden(byte x);
FN half hidden(half x);
FN int from_bytes(int a, int b);
FN int least(int a, int b) { return a < b ? a : b; }
FN int most(int a, int b) { return a > b ? a : b; }
FN float near(float x) { return x > -30000.f ? (x < 30000.f ? x : 30000.f) : -30000.f; }
FN double nearer(double x) { return x > -1e15 ? (x < 1e15 ? x : 1e15) : -1e15; }
FN int whole(float x) { return (int)near(x); }
FN wide whole(double x) { return (wide)nearer(x); }
FN half halved(float x) { return (half)near(x); }
FN half sum(half a, half b) { return a + b; }  // each rounds once: the host may keep a chain of them in fp32
FN half difference(half a, half b) { return hidden(a) - b; }
FN half product(half a, half b) { return a * b; }
FN int bits(float x) { return __builtin_bit_cast(int, near(x)); }
FN wide bits(double x) { return __builtin_bit_cast(wide, nearer(x)); }
FN float number(int x) { return __builtin_bit_cast(float, (x & 0x3fffff) | 0x3f800000); }
FN int added(int a, int b) { return __builtin_elementwise_add_sat(a, b); }
FN int quotient(int a, int b) { return (int)((unsigned)hidden(a) / ((unsigned)b | 1u)); }
FN int rest(int a, int b) { return (int)((unsigned)hidden(a) % ((unsigned)b | 1u)); }
FN wide quotient(wide a, wide b) { return (wide)((mask)hidden(a) / ((mask)b | 1u)); }
FN wide rest(wide a, wide b) { return (wide)((mask)hidden(a) % ((mask)b | 1u)); }
FN half as_half(short x) { return (half)x; }
"""
DEVICE_FUNCTIONS = """
FN float as_bfloat(float x) { return (float)(__bf16)near(x); }
FN int from_bytes(int a, int b) { return __builtin_amdgcn_sdot4(a, b, 0, false); }
FN int hidden(int x) { asm("" : "+v"(x)); return x; }
FN wide hidden(wide x) { asm("" : "+v"(x)); return x; }
FN float hidden(float x) { asm("" : "+v"(x)); return x; }
FN double hidden(double x) { asm("" : "+v"(x)); return x; }
FN short hidden(short x) { asm("" : "+v"(x)); return x; }
FN byte hidden(byte x) { return (byte)hidden((int)x); }
FN half hidden(half x) { asm("" : "+v"(x)); return x; }
"""
"""`hidden`: a value of which the compiler knows nothing, and which may differ between lanes. clang-19 goes wrong in
these cases, and no kernel has them.

What is the same in all lanes (a constant, or computed of such) lies in a scalar register, also where lanes go apart in
a loop or leave a function early and meet again. All of them then read what the last one wrote, or what another branch
wrote meanwhile. What is assigned in such a function is hidden.

So is the first number of a difference in fp16: of 0 - x clang-19 makes -x, which is -0 where x is 0.

So are dividends: where clang-19 knows that both numbers have few bits, it divides in fp32. LLVM mended that in 2026:

- Unsigned numbers that are the sign extension of some that have 24 bits or fewer (LLVM's pull request 196418).
  0xffffff80 / 0xffff8001 is divided as 2^32 / (2^32 - 2^15), and the quotient is 1.
- Dividends of 23 or 24 bits (201186, 202753): v_rcp_f32 is documented to one unit of the last place. For 15000424 / 11
  the product of 15000424 and the fp32 number nearest to 1/11 is rounded up to 1363675, one more than the quotient.
- The negative number of the largest magnitude, divided by -1 (203436, 204469).
- Remainders of a byte that is the upper half of a short: `v_cvt_f32_ubyte1` converts the right byte, but the product of
  quotient and divisor is then subtracted from the whole short, not from its upper half.

So is a wide number whose complement is taken: of `x | ~(wide)y`, with y an unsigned number of 32 bits, clang-19 leaves
the upper half of x as it is (`v_not_b32` and `v_or_b32` of the lower half alone).

`from_bytes` is one instruction here, because clang-19 finds it in a loop over bytes too, and makes mistakes there: it
adds what is to be subtracted from the sum (198412), and takes bytes of the lower half of a wide number that has been
shifted by 32 (115224).
"""
HOST_FUNCTIONS = """
FN float as_bfloat(float x) {  // to nearest, ties to even; (__bf16)x would be a call of the compiler's own library
  int b = bits(x);
  return __builtin_bit_cast(float, (int)((unsigned)(b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u));
}
FN int from_bytes(int a, int b) {
  int s = 0;
  for (int k = 0; k < 32; k += 8) s += (signed char)(a >> k) * (signed char)(b >> k);
  return s;
}
FN int hidden(int x) { return x; }
FN wide hidden(wide x) { return x; }
FN float hidden(float x) { return x; }
FN double hidden(double x) { return x; }
FN short hidden(short x) { return x; }
FN byte hidden(byte x) { return x; }
FN half hidden(half x) { return x; }
"""
OPERATIONS = MappingProxyType(
    {
        "i": (
            *("({i} + {i})", "({i} - {i})", "({i} * {i})", "({i} & {i})", "({i} | {i})", "({i} ^ {i})", "(~{i})"),
            *("({i} << ({i} & 31))", "({i} >> ({i} & 31))", "(int)((unsigned){i} >> ({i} & 31))", "(-({i}))"),
            *("({i} < {i} ? {i} : {i})", "((unsigned){i} < (unsigned){i} ? {i} : {i})", "({f} < {f} ? {i} : {i})"),
            *("({w} < {w} ? {i} : {i})", "({d} >= {d} ? {i} : {i})", "({i} == {i} ? {i} : {i})"),
            *("quotient({i}, {i})", "rest({i}, {i})", "(hidden({i}) / (({i} & 1023) + 1))"),
            *("((hidden({i}) & 0x3fffff) % (({i} & 255) + 3))", "((hidden({i}) << 10 >> 10) / (({i} & 511) + 1))"),
            *("((hidden({i}) >> 1) / ({i} | 1))", "least({i}, {i})", "most({i}, {i})", "most(least({i}, {i}), {i})"),
            *("(int)(short){i}", "(int)(signed char){i}", "((int)((unsigned){i} << 7) >> 20)", "(({i} >> 5) & 0xff)"),
            *("(int)((wide){i} * {i} >> 32)", "(int)((mask)(unsigned){i} * (unsigned){i} >> 17)", "added({i}, {i})"),
            *("(({i} & 0xffffff) * ({i} & 0xffffff))", "(({i} << 3) + {i})", "from_bytes({i}, {i})"),
            *("__builtin_popcount((unsigned){i})", "__builtin_clz((unsigned){i} | 1u)", "(int)__builtin_bswap32({i})"),
            *("__builtin_ctz((unsigned){i} | 256u)", "(int)__builtin_bitreverse32({i})", "__builtin_popcountll({w})"),
            *("whole({f})", "whole((float){z})", "bits({f})", "(int){h}", "(int){b}", "(int){w}", "(int)({w} >> 32)"),
            *("((int){h} * {h} + {i})", "(int)(unsigned short){h}", "(({i} & {i}) | (~{i} & {i}))"),
        ),
        "f": (
            *("({f} + {f})", "({f} - {f})", "({f} * {f})", "({f} / {f})", "({f} / (1.5f + __builtin_fabsf({f})))"),
            *("__builtin_fmaf({f}, {f}, {f})", "__builtin_fabsf({f})", "(-({f}))", "__builtin_sqrtf({f})"),
            *("({i} < {i} ? {f} : {f})", "({f} < {f} ? {f} : {f})", "({f} > {f} ? {f} : {f})", "number({i})"),
            *("__builtin_floorf(near({f}))", "__builtin_truncf(near({f}))", "__builtin_ceilf(near({f}))"),
            *("__builtin_rintf(near({f}))", "__builtin_ldexpf(near({f}), ({i} & 255) - 160)", "as_bfloat({f})"),
            *("(float){i}", "(float)(unsigned){i}", "(float){w}", "(float)(mask){w}", "(float){d}", "(float){z}"),
            *("(float){h}", "(float){b}", "(float)({i} & 0xffff)", "(float)((double){f} * (double){f})"),
            *("__builtin_copysignf({f}, near({f}))", "(near({f}) * 0.25f)"),
        ),
        "w": (
            *("({w} + {w})", "({w} - {w})", "({w} * {w})", "({w} & {w})", "({w} | {w})", "({w} ^ {w})", "(-({w}))"),
            *("({w} << ({i} & 63))", "({w} >> ({i} & 63))", "(wide)((mask){w} >> ({i} & 63))", "(~hidden({w}))"),
            *("({i} < {i} ? {w} : {w})", "({w} < {w} ? {w} : {w})", "((mask){w} > (mask){w} ? {w} : {w})"),
            *("(wide){i}", "(wide)(unsigned){i}", "((wide){i} * {i})", "(wide)((mask)(unsigned){i} * (unsigned){i})"),
            *("(hidden({w}) / (({i} & 1023) + 1))", "(hidden({w}) % (({i} & 255) + 3))", "quotient({w}, {w})"),
            *("((wide){i} * {i} + {w})", "whole({d})", "bits({d})", "(wide)__builtin_bswap64({w})", "({w} + {i})"),
            *("rest({w}, {w})", "(wide)__builtin_clzll((mask){w} | 1u)", "(wide)__builtin_ctzll({w} | 256)"),
        ),
        "d": (
            *("({d} + {d})", "({d} - {d})", "({d} * {d})", "({d} / (1.5 + __builtin_fabs({d})))", "({d} / {d})"),
            *("__builtin_fma({d}, {d}, {d})", "__builtin_fabs({d})", "(-({d}))", "__builtin_sqrt({d})"),
            *("(double){i}", "(double)(unsigned){i}", "(double){w}", "(double)(mask){w}", "(double){f}", "(double){h}"),
            *("({d} < {d} ? {d} : {d})", "({i} < {i} ? {d} : {d})", "__builtin_floor(nearer({d}))"),
            *("__builtin_trunc(nearer({d}))", "__builtin_rint(nearer({d}))"),
            "__builtin_ldexp(nearer({d}), ({i} & 2047) - 1100)",
        ),
        "h": (
            *("(short){i}", "(short)({h} + {h})", "(short)({h} - {h})", "(short)({h} * {h})", "(short)({h} ^ {h})"),
            *("(short)({h} >> ({i} & 15))", "(short)({h} << ({i} & 15))", "({h} < {h} ? {h} : {h})", "(short){b}"),
            *("(short)({h} / (({h} & 63) + 1))", "(short)((unsigned short){h} >> ({i} & 15))", "(short)whole({f})"),
            "(short)((unsigned short){h} / ((unsigned short){h} | 1))",
        ),
        "b": (
            *("(byte){i}", "(byte)({b} + {b})", "(byte)({b} * {b})", "(byte)({b} ^ {b})", "(byte)({b} >> ({i} & 7))"),
            *(
                "(byte)({b} / (({b} & 7) + 1))",
                "({b} < {b} ? {b} : {b})",
                "(byte)({h} >> 8)",
                "(byte)(hidden((int){b}) % ({b} | 1))",
            ),
        ),
        "z": (
            *("halved({f})", "sum({z}, {z})", "difference({z}, {z})", "product({z}, {z})", "({i} < {i} ? {z} : {z})"),
            *("({z} < {z} ? {z} : {z})", "(-({z}))", "as_half({h})", "halved((float){z} / (float){z})"),
        ),
    }
)
"""For each type: texts with a letter in the place of each operand."""
_OPERAND = re.compile(r"\{(\w)\}")
_EARLY_LEAF, _UNIFORM_SHARE, _LITERAL_SHARE = 0.1, 0.1, 0.12


class Expressions:
    """Draws expressions."""

    def __init__(self, random: random.Random) -> None:
        self.random = random

    def drawn(self, kind: str, depth: int, more: Sequence[str] = ()) -> str:
        """Return an expression of a type. `more`: names of integers beside the record's fields."""
        uniform = self.random.random() < _UNIFORM_SHARE
        return self._drawn(kind, depth, more, uniform)

    def condition(self, more: Sequence[str] = ()) -> str:
        """Return an expression that is true or false."""
        kind = self.random.choice("iiiifwd")
        sign = self.random.choice(("<", ">", "<=", ">=") if kind in "fd" else ("<", ">", "==", "!="))
        uniform = self.random.random() < _UNIFORM_SHARE
        return f"{self._drawn(kind, 2, more, uniform)} {sign} {self._drawn(kind, 1, more, uniform)}"

    def _drawn(self, kind: str, depth: int, more: Sequence[str], uniform: bool) -> str:
        if depth <= 0 or self.random.random() < _EARLY_LEAF:
            return self._leaf(kind, more, uniform)
        text = self.random.choice(OPERATIONS[kind])
        return _OPERAND.sub(lambda found: self._drawn(found[1], depth - 1, more, uniform), text)

    def _leaf(self, kind: str, more: Sequence[str], uniform: bool) -> str:
        if self.random.random() < _LITERAL_SHARE:
            return self._literal(kind)
        if uniform:
            same = [f"l.{name}" for name in UNIFORM if name[0] == kind]
            return self.random.choice(same) if same else self._literal(kind)
        names = [f"l.{kind}{digit}" for digit in "012"] + [f"l.{name}" for name in UNIFORM if name[0] == kind]
        return self.random.choice([*names, "l.i9", *more] if kind == "i" else names)

    def _literal(self, kind: str) -> str:
        whole, number = self.random.randrange(-70000, 70000), self.random.uniform(-9, 9)
        small = self.random.choice((0, 1, 2, 4, 64, -1, -16, 65, 255, 65535, whole))
        texts = {
            "i": f"({small})",
            "f": self.random.choice((f"({number:.3f}f)", f"({round(number)}.f)", "0.5f")),
            "w": f"({self.random.choice((small, whole << 20, whole << 40))}ll)",
            "d": f"({number:.5f})",
            "h": f"((short)({small}))",
            "b": f"((byte)({small}))",
            "z": f"((half)({number:.3f}f))",
        }
        return texts[kind]
