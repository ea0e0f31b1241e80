"""Random kernels, as HIP for the machine and as C++ for the host, where a loop runs over the lanes.

A kernel is what its number makes it: `python -m tests.gpu.machine.generated_kernels 4711` prints both texts of one.
"""

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from tests.gpu.machine.generated_exchanges import ATOMICS, GROUP, LANE_FUNCTIONS, Exchange, Exchanges
from tests.gpu.machine.generated_expressions import (
    DEVICE_FUNCTIONS,
    FUNCTIONS,
    HOST_FUNCTIONS,
    TYPES,
    UNIFORM,
    Expressions,
)

GROUPS, CELLS, MOST_WIDTH = 2, 16, 4
"""Workgroups, cells of global atomic operations for each of their two types, elements that a lane loads at most."""
LANES = GROUPS * GROUP
_APART_SHARE = 0.6
PARAMETERS = ", ".join(
    (
        *(f"const {name}* {kind}_in" for kind, name in TYPES.items()),
        *(f"{name}* {kind}_out" for kind, name in TYPES.items()),
        *("int* cells", "mask* wide_cells", "int count"),
    )
)
"""Arrays: what is loaded (MOST_WIDTH elements a lane), what is stored (one a lane), and cells, which are zero before.
`count`: lanes that store."""
_FIELDS = " ".join(f"{name} {', '.join(f'{kind}{digit}' for digit in '012')};" for kind, name in TYPES.items())
LANE = f"struct Lane {{ {_FIELDS} int i8, i9; float f8; wide w8; double d8; }};\n"
VECTORS = "".join(
    f"typedef {name} {kind}_x{width} __attribute__((ext_vector_type({width})));\n"
    for kind, name in TYPES.items()
    for width in (2, 4)
)
DIGEST = """
FN int digest(const Lane& l) {  // of all that a lane has computed, so that nothing is left out as unused
  wide wides[4] = { l.w1, l.w2, bits(l.d1), bits(l.d2) };
  int some[10] = { l.i1, l.i2, bits(l.f1), bits(l.f2), l.h1, l.h2, l.b1, l.b2, bits((float)l.z1), bits((float)l.z2) };
  int found = 1;
  for (wide one : wides) found = found * 31 + (int)(one ^ (one >> 32));
  for (int one : some) found = found * 31 + one;
  return found;
}
"""
_RECORD = VECTORS + LANE + DIGEST
DEVICE_HEAD = (
    "#include <hip/hip_runtime.h>\n#define FN __device__ static inline\n" + FUNCTIONS + DEVICE_FUNCTIONS + _RECORD
)
HOST_HEAD = "#define FN static inline\n" + FUNCTIONS + HOST_FUNCTIONS + _RECORD + LANE_FUNCTIONS


@dataclass(frozen=True)
class GeneratedKernel:
    """A kernel `k<number>` in both languages."""

    number: int
    device: str
    host: str

    @property
    def name(self) -> str:
        """Its symbol in both."""
        return f"k{self.number}"


def device_text(kernels: Iterable[GeneratedKernel]) -> str:
    """Return a file of HIP."""
    return DEVICE_HEAD + "".join(kernel.device for kernel in kernels)


def host_text(kernels: Iterable[GeneratedKernel]) -> str:
    """Return a file of C++."""
    return HOST_HEAD + "".join(kernel.host for kernel in kernels)


def generated(number: int) -> GeneratedKernel:
    """Return the kernel of a number."""
    return _Generator(number).kernel()


class _Generator:
    """Draws one kernel."""

    def __init__(self, number: int) -> None:
        self.number, self.random = number, random.Random(number)
        self.expressions = Expressions(self.random)
        self.apart = False  # whether lanes may leave loops and the stage at different times

    def kernel(self) -> GeneratedKernel:
        """Return the kernel: lanes load, compute and exchange in turn, and store."""
        load, exchanges = self._load(), Exchanges(self.random, self.expressions)
        steps = list[Exchange]()
        for n in range(self.random.choice((1, 1, 2))):
            steps.append(self._stage(f"s{self.number}_{n}"))
            steps += [exchanges.drawn(f"t{self.number}_{n}_{k}") for k in range(self.random.choice((1, 1, 2)))]
        steps.append(self._stage(f"s{self.number}_last"))
        functions = "".join(step.functions for step in steps)
        end = self._end()
        head = f"{functions}FN Lane begun{self.number}(int i, int group, {PARAMETERS}) {{ {load} return l; }}\n"
        given = ", ".join(part.split()[-1].lstrip("*") for part in PARAMETERS.split(","))
        device = (
            f'{head}extern "C" __global__ void k{self.number}({PARAMETERS}) {{\n'
            f" int i = blockIdx.x * {GROUP} + threadIdx.x; Lane l = begun{self.number}(i, blockIdx.x, {given});\n "
            + "\n ".join(step.device for step in (*steps, end))
            + "\n}\n"
        )
        host = (
            f'{head}extern "C" void k{self.number}({PARAMETERS}) {{\n'
            f" for (int group = 0; group < {GROUPS}; ++group) {{ Lane all[{GROUP}];\n"
            f" for (int n = 0; n < {GROUP}; ++n)"
            f" all[n] = begun{self.number}(group * {GROUP} + n, group, {given});\n "
            + "\n ".join(step.host for step in (*steps, end))
            + "\n} }\n"
        )
        return GeneratedKernel(self.number, device, host)

    def _load(self) -> str:
        """Return how a lane `l` begins: what it loads, the first of each type in a width of its own."""
        lines = ["Lane l;", "l.i9 = i;"]
        for kind in TYPES:
            width = self.random.choice((1, 1, 2, 4))
            if width == 1:
                loaded = f"{kind}_in[i]"
            else:
                vector = f"((const {kind}_x{width}*){kind}_in)[i]"
                place = self.random.choice((f"[i & {width - 1}]", f"[{self.random.randrange(width)}]"))
                loaded = f"{vector}{place}"
            lines.append(f"l.{kind}0 = {loaded}; l.{kind}1 = {kind}_in[i + {LANES}];")
            lines.append(f"l.{kind}2 = {kind}_in[i + {2 * LANES}];")
        lines += [f"l.{name} = {name[0]}_in[group + {self.random.randrange(8)}];" for name in UNIFORM]
        return " ".join(lines)

    def _stage(self, name: str) -> Exchange:
        """Return what each lane does on its own, in a function that it may leave early if lanes may go apart."""
        self.apart = self.random.random() < _APART_SHARE
        lines = [self._assigned(kind, self.random.choice((2, 3)), ()) for kind in self.random.sample([*TYPES], 3)]
        lines += [self._statement(2, ()) for _ in range(self.random.randrange(1, 4))]
        text = f"FN void {name}(Lane& l) {{\n  " + "\n  ".join(lines) + "\n}\n"
        return Exchange(f"{name}(l);", f"for (auto& l : all) {name}(l);", text)

    def _assigned(self, kind: str, depth: int, more: tuple[str, ...]) -> str:
        """Return an assignment. Sums of numbers are kept finite, so that not all end as infinities."""
        drawn = self._value(kind, self.expressions.drawn(kind, depth, more))
        how = self.random.choice(("=", "^=", "+=") if kind in "iw" else ("=", "mix"))
        if how == "mix" and kind in "fd":
            keep = "near" if kind == "f" else "nearer"
            return f"l.{kind}1 = {keep}(l.{kind}1) * ({TYPES[kind]})0.5 + {keep}({drawn});"
        return f"l.{kind}1 {'=' if how == 'mix' else how} {drawn};"

    def _value(self, kind: str, text: str) -> str:
        """Return what is assigned for an expression (`hidden` says why)."""
        return f"hidden(({TYPES[kind]})({text}))" if self.apart else text

    def _statement(self, depth: int, more: tuple[str, ...]) -> str:
        """Return a statement with others in it, which may be skipped or repeated for some lanes only."""
        choice = self.random.choice((0, 1, 2, 3, 4, 5, 6) if self.apart else (0, 1, 2, 3, 5, 6)) if depth else 6
        if choice <= 1:
            return self._loop(depth, more)
        if choice == 2:
            return f"if ({self.expressions.condition(more)}) {{ {self._block(depth - 1, more)} }}"
        if choice == 3:
            blocks = (self._block(depth - 1, more) for _ in range(2))
            return f"if ({self.expressions.condition(more)}) {{ {next(blocks)} }} else {{ {next(blocks)} }}"
        if choice == 4:
            return f"if ({self.expressions.condition(more)}) return;"
        if choice == 5:
            kind, size = self.random.choice([*TYPES]), self.random.choice((2, 4, 8))
            cells = ", ".join(self.expressions.drawn(kind, 1, more) for _ in range(size))
            place = f"{self.expressions.drawn('i', 1, more)} & {size - 1}"
            return (
                f"{{ {TYPES[kind]} some[{size}] = {{ {cells} }}; l.{kind}1 = {self._value(kind, f'some[{place}]')}; }}"
            )
        return self._assigned(self.random.choice("iiiffwdhbz"), 2, more)

    def _block(self, depth: int, more: tuple[str, ...]) -> str:
        return " ".join(self._statement(depth, more) for _ in range(self.random.randrange(1, 3)))

    def _loop(self, depth: int, more: tuple[str, ...]) -> str:
        """Return a loop of at most seven rounds, often a different number in each lane if lanes may go apart."""
        name, same = f"k{len(more)}", ("3", "l.i8 & 3")
        rounds = self.random.choice(
            ("l.i0 & 7", "l.i1 & 3", "(l.i0 ^ l.i2) & 5", "l.b0 & 3", *same) if self.apart else same
        )
        leave = ""
        if self.random.random() < 0.3:
            word = self.random.choice(("break", "continue")) if self.apart else "continue"
            leave = f"if ({self.expressions.condition((*more, name))}) {word}; "
        block = self._block(depth - 1, (*more, name))
        return f"for (int {name} = 0, end = {rounds}; {name} < end; ++{name}) {{ {leave}{block} }}"

    def _end(self) -> Exchange:
        """Return global atomic operations and stores; some lanes store nothing, and some less than others."""
        lines, host = list[str](), list[str]()
        if self.random.random() < 0.6:
            for kind, array, cell in (("i", "cells", "int"), ("w", "wide_cells", "mask")):
                name, how = self.random.choice(ATOMICS)
                place = self.random.choice(("l.i0 & 15", "0", "l.i9 & 3", "l.i8 & 15"))
                lines.append(f"atomic{name}(&{array}[{place}], ({cell})l.{kind}1);")
                host.append(f"{{ auto& one = {array}[{place}]; one = combined(one, ({cell})l.{kind}1, '{how}'); }}")
        lines.append(leave := "if (i >= count) return;")
        host.append(leave.replace("return", "continue"))
        stop = self.random.randrange(len(TYPES) * 3)
        for n, kind in enumerate(TYPES):
            if n == stop:
                lines.append(leave := f"if ({self.expressions.condition()}) return;")
                host.append(leave.replace("return", "continue"))
            more = " ^ digest(l)" if kind == "i" else ""
            store = f"{kind}_out[i] = {self.expressions.drawn(kind, 2)}{more};"
            lines.append(store)
            host.append(store)
        loop = f"for (int n = 0; n < {GROUP}; ++n) {{ const Lane& l = all[n]; int i = group * {GROUP} + n; "
        return Exchange(" ".join(lines), loop + " ".join(host) + " }")


if __name__ == "__main__":
    for wanted in map(int, sys.argv[1:]):
        one = generated(wanted)
        print(device_text([one]), host_text([one]), sep="\n")
