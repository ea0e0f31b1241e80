"""Counts a kernel's instructions: matrix instructions, memory accesses, waits, and the mix by loop depth."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernel_scientist.gpu.isa.loops import Flow, depths

CONFLICT = "lds_conflict"
"""Key of a mix: cycles, not instructions."""


class Instruction(NamedTuple):
    """The relevant properties of an instruction."""

    kind: str
    """Its key in a mix: `valu`, `lds_read 128`, ...; a matrix instruction's own name."""
    matrix: bool = False
    access: str = ""
    """Kind and bits per lane, such as `buffer_load 128`; empty without a memory access."""
    jump: str | None = None
    """Label of the jump's target, if any."""
    falls: bool = True
    """Whether the next instruction may follow."""
    conflicts: int = 0
    """Cycles that conflicts between banks of the LDS add to it."""


class Tally(NamedTuple):
    """The counted fields of a code object (`records.evaluation.CodeObject`)."""

    mfma: dict[str, int]
    accesses: dict[str, int]
    waits: int
    barriers: int
    mix: tuple[dict[str, int], ...]

    @staticmethod
    def of(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> "Tally":
        """Count a kernel's instructions. `labels`: index of the instruction that follows each label."""
        count = len(instructions)
        places = {name: index for name, index in labels.items() if index < count}
        flow = [Flow(places.get(i.jump) if i.jump is not None else None, i.falls) for i in instructions]
        depth = depths(flow)
        mix: list[Counter[str]] = [Counter() for _ in range(max(depth, default=-1) + 1)]
        for instruction, level in zip(instructions, depth, strict=True):
            mix[level][instruction.kind] += 1
            if instruction.conflicts:
                mix[level][CONFLICT] += instruction.conflicts
        return Tally(
            mfma=dict(Counter(i.kind for i in instructions if i.matrix)),
            accesses=dict(Counter(i.access for i in instructions if i.access)),
            waits=sum(i.kind == "wait" for i in instructions),
            barriers=sum(i.kind == "barrier" for i in instructions),
            mix=tuple(dict(level) for level in mix),
        )


_OWN = re.compile(r"_Z(?:N12_GLOBAL__N_1)?(\d{1,3})(?=[A-Za-z_])")


def plain(mangled: Sequence[str]) -> dict[str, str]:
    """Return each symbol's plain name (`_Z4gemmPKhPf` is `gemm`, Itanium C++ ABI), or the symbol if two are equal."""
    short = {symbol: _own(symbol) for symbol in mangled}
    count = Counter(short.values())
    return {symbol: name if count[name] == 1 else symbol for symbol, name in short.items()}


def _own(symbol: str) -> str:
    found = _OWN.match(symbol)
    if found is None:
        return symbol
    name = symbol[found.end() : found.end() + int(found[1])]
    return name if len(name) == int(found[1]) else symbol
