"""Random exchanges between the lanes of a workgroup, as HIP and as C++ over an array of all lanes."""

import random
from dataclasses import dataclass

from tests.gpu.machine.generated_expressions import TYPES, Expressions

GROUP = 256
"""Lanes of a workgroup."""
LANE_FUNCTIONS = f"""
template <class T, class From> void put(Lane* all, T Lane::*to, From from) {{
  T got[{GROUP}];
  for (int n = 0; n < {GROUP}; ++n) got[n] = from(n);
  for (int n = 0; n < {GROUP}; ++n) all[n].*to = got[n];
}}
template <class Of> mask ballot(int n, Of of) {{
  mask found = 0;
  for (int k = 0; k < 64; ++k) found |= (mask)of((n & ~63) | k) << k;
  return found;
}}
template <class T> T combined(T a, T b, char how) {{
  return how == '+' ? a + b : how == '<' ? (b < a ? b : a) : how == '>' ? (a < b ? b : a)
       : how == '&' ? a & b : how == '|' ? a | b : a ^ b;
}}
inline float combined(float a, float b, char) {{ return a + b; }}
"""
ATOMICS = (("Add", "+"), ("Min", "<"), ("Max", ">"), ("And", "&"), ("Or", "|"), ("Xor", "^"))
"""Operations whose result does not depend on the order of lanes."""
_DPP = (("0xB1", "n ^ 1"), ("0x4E", "n ^ 2"), ("0x140", "n ^ 15"), ("0x141", "n ^ 7"))
"""Permutations within a row of 16 lanes, by their codes in the ISA document: quad_perm, row_mirror, row_half_mirror."""


@dataclass(frozen=True)
class Exchange:
    """A step that all lanes of a workgroup take together."""

    device: str
    """A lane's statements."""
    host: str
    """The statements for `Lane* all`."""
    functions: str = ""
    """Which both call."""


class Exchanges:
    """Draws exchanges."""

    def __init__(self, random: random.Random, expressions: Expressions) -> None:
        self.random, self.expressions = random, expressions

    def drawn(self, name: str) -> Exchange:
        """Return an exchange. name: of the functions that it needs."""
        kinds = (self._through_lds, self._shuffle, self._shuffle, self._row, self._votes, self._tree, self._atomic)
        return self.random.choice(kinds)(name)

    def _through_lds(self, _: str) -> Exchange:
        kind = self.random.choice([*TYPES])
        turn = self.random.randrange(1, GROUP)
        place = self.random.choice(
            ("(n + {t}) & 255", "(n * 16 + n / 16) & 255", "(n * 5 + {t}) & 255", "({i0} & 255)", "n ^ {t}")
        )
        device, host = (place.replace("{t}", str(turn)).replace("{i0}", field) for field in ("l.i0", "all[n].i0"))
        device = (
            f"{{ __shared__ {TYPES[kind]} cells[{GROUP}]; int n = threadIdx.x; cells[n] = l.{kind}1; __syncthreads();"
            f" l.{kind}2 = cells[{device}]; __syncthreads(); }}"
        )
        return Exchange(device, f"put(all, &Lane::{kind}2, [&](int n) {{ return all[{host}].{kind}1; }});")

    def _shuffle(self, _: str) -> Exchange:
        kind, way = self.random.choice("ifwd"), self.random.choice((1, 2, 3, 4, 8, 15, 16, 31, 32))
        calls = {
            f"__shfl_xor(l.{kind}1, {way})": f"n ^ {way}",
            f"__shfl(l.{kind}1, l.i0 & 63)": "(n & ~63) | (all[n].i0 & 63)",
            f"__shfl(l.{kind}1, {way})": f"(n & ~63) | {way}",
            f"__shfl_up(l.{kind}1, {way})": f"(n & 63) >= {way} ? n - {way} : n",
            f"__shfl_down(l.{kind}1, {way})": f"(n & 63) + {way} < 64 ? n + {way} : n",
            f"__shfl_xor(l.{kind}1, {way & 15}, 16)": f"n ^ {way & 15}",
            f"__shfl(l.{kind}1, l.i0 & 15, 16)": "(n & ~15) | (all[n].i0 & 15)",
        }
        call = self.random.choice([*calls])
        return Exchange(
            f"l.{kind}2 = {call};", f"put(all, &Lane::{kind}2, [&](int n) {{ return all[{calls[call]}].{kind}1; }});"
        )

    def _row(self, _: str) -> Exchange:
        """Lanes of a row. It is `hidden`: clang-19 makes a conversion to fp64 with DPP of it, and then refuses that."""
        code, place = self.random.choice([*_DPP, *((hex(0x120 + k), f"(n & ~15) | ((n - {k}) & 15)") for k in (1, 5))])
        sign = self.random.choice("+-&^")
        return Exchange(
            f"l.i2 = hidden(__builtin_amdgcn_update_dpp(0, l.i1, {code}, 15, 15, true) {sign} l.i0);",
            f"put(all, &Lane::i2, [&](int n) {{ return all[{place}].i1 {sign} all[n].i0; }});",
        )

    def _votes(self, name: str) -> Exchange:
        test = f"FN bool {name}(const Lane& l) {{ return {self.expressions.condition()}; }}\n"
        if self.random.random() < 0.4:  # only the lanes there take part
            return Exchange(
                f"if (l.i0 > l.i1) l.w2 = (wide)__ballot({name}(l));",
                "put(all, &Lane::w2, [&](int n) { return all[n].i0 > all[n].i1 ? (wide)ballot(n, [&](int k) { return"
                f" all[k].i0 > all[k].i1 && {name}(all[k]); }}) : all[n].w2; }});",
                test,
            )
        ballot = f"ballot(n, [&](int k) {{ return {name}(all[k]); }})"
        calls = {
            f"__popcll(__ballot({name}(l)) & ((1ull << (threadIdx.x & 63)) - 1))": (
                f"__builtin_popcountll({ballot} & ((1ull << (n & 63)) - 1))"
            ),
            f"(__any({name}(l)) != 0)": f"({ballot} != 0)",
            f"(__all({name}(l)) != 0)": f"({ballot} == ~0ull)",
        }
        call = self.random.choice([*calls])
        host = f"put(all, &Lane::i2, [&](int n) {{ return (int){calls[call]}; }});"
        return Exchange(f"l.i2 = (int){call};", host, test)

    def _tree(self, _: str) -> Exchange:
        kind, top = self.random.choice("iifwd"), self.random.choice((8, 32))
        step = self.random.choice(("{a} + {b}", "({a} < {b} ? {b} : {a})", "({b} < {a} ? {b} : {a})"))
        device = step.format(a=f"l.{kind}2", b="other")
        host = step.format(a=f"all[n].{kind}2", b=f"all[n ^ k].{kind}2")
        return Exchange(
            f"l.{kind}2 = l.{kind}1; for (int k = {top}; k; k >>= 1) {{ {TYPES[kind]} other = __shfl_xor(l.{kind}2, k);"
            f" l.{kind}2 = {device}; }}",
            f"put(all, &Lane::{kind}2, [&](int n) {{ return all[n].{kind}1; }}); for (int k = {top}; k; k >>= 1)"
            f" put(all, &Lane::{kind}2, [&](int n) {{ return ({TYPES[kind]})({host}); }});",
        )

    def _atomic(self, _: str) -> Exchange:
        kind, (name, how) = self.random.choice("iiwf"), self.random.choice(ATOMICS)
        if kind == "f":  # of whole numbers below 2^24 every order of addition gives the same sum
            kind, cell, name, how, value = "f", "float", "Add", "+", "(float)({l}.i1 & 255)"
        else:
            cell = "int" if kind == "i" else "mask"
            value = f"({cell}){{l}}.{kind}1"
        place = self.random.choice(("{l}.i0 & 7", "0", "{l}.i9 & 3", "{l}.i8 & 7"))
        first, lane = self.random.randrange(100), "all[n]"
        return Exchange(
            f"{{ __shared__ {cell} cells[8]; int n = threadIdx.x; if (n < 8) cells[n] = {first}; __syncthreads();"
            f" atomic{name}(&cells[{place.format(l='l')}], {value.format(l='l')}); __syncthreads();"
            f" l.{kind}2 = ({TYPES[kind]})cells[n & 7]; __syncthreads(); }}",
            f"{{ {cell} cells[8]; for (auto& one : cells) one = {first}; for (int n = 0; n < {GROUP}; ++n)"
            f" {{ auto& one = cells[{place.format(l=lane)}]; one = combined(one, {value.format(l=lane)}, '{how}'); }}"
            f" put(all, &Lane::{kind}2, [&](int n) {{ return ({TYPES[kind]})cells[n & 7]; }}); }}",
        )
