"""How long the result of a matrix instruction is not to be touched, on gfx942.

Source: AMD Instinct MI300 ISA, 4.5 "Manually Inserted Wait States"; LLVM, GCNHazardRecognizer.cpp (`GFX940_...`) and
SISchedule.td (`SIDPGFX940FullSpeedModel`). gfx950 needs one wait state more after an XDL instruction of 4 passes or
more; its new instructions are taken for as fast as they can be. Runs in workers: standard library only.
"""

import functools
import re
from dataclasses import dataclass

from kernel_scientist.gpu.machine.effects import Effect, Span, Unit

_SHAPE = re.compile(r"v_(s?)mfmac?_(?:scale_)?([fi]\d+)_(\d+)x\d+x(\d+)_?(.*)")
_PLAIN = re.compile(r"(?:\d+b_)?f32$")


@dataclass(frozen=True)
class Writer:
    """A class of matrix instructions: all of it need the same distances."""

    passes: int
    """Of four cycles."""
    double: bool
    """Whether it multiplies 64-bit numbers."""
    xdl: bool
    """Whether it runs in the matrix pipeline for narrow types; matrices of 32-bit and 64-bit numbers do not."""

    @property
    def kind(self) -> str:
        """Return its name."""
        return f"matrix {self.passes} {self.double} {self.xdl}"

    @property
    def accumulator(self) -> str:
        """Return a name for its reading of what it adds to."""
        return f"accumulator {self.passes}"

    def read(self, by_memory: bool, more: int) -> int:
        """Return the wait states before a vector or memory instruction may read the result."""
        if self.double:
            return (9 if by_memory else 6) if self.passes == 4 else 18 if by_memory else 11
        return self._late(more)

    def overwritten(self, more: int) -> int:
        """Return the wait states before a vector or memory instruction may overwrite the result."""
        return self.factor(more)

    def factor(self, more: int) -> int:
        """Return the wait states before a matrix instruction may multiply the result."""
        if self.double:
            return 6 if self.passes == 4 else 11
        return self._late(more)

    def added(self, reader: "Writer", more: int) -> int:
        """Return the wait states before a matrix instruction may add to registers that overlap the result."""
        if reader.xdl and not self.xdl:
            return 0
        if self.double:
            return 4 if self.passes == 4 else 9
        return self.passes + (1 + self._more(more) if self.xdl else 0)

    def continued(self, reader: "Writer") -> int:
        """Return the wait states before a matrix instruction may add to just the result."""
        if self.double and reader.double and self.passes == reader.passes == 4:
            return 4
        return 2 if self.passes == 2 else 0

    def _late(self, more: int) -> int:
        return self.passes + (3 + self._more(more) if self.xdl else 2)

    def _more(self, more: int) -> int:
        return more if self.passes != 2 else 0


@functools.lru_cache
def _named(name: str) -> Writer | None:
    found = _SHAPE.match(name)
    if found is None:
        return None
    sparse, result, rows, depth = bool(found[1]), found[2], int(found[3]), int(found[4])
    double = result == "f64"
    xdl = not double and not _PLAIN.match(found[5])
    if rows == 4:
        passes = 4 if double else 2
    elif double:
        passes = 8
    else:
        quick = sparse or "xf32" in found[5] or depth >= (16 if rows == 16 else 8)
        passes = (4 if quick else 8) * rows // 16
    return Writer(passes, double, xdl)


def writer(one: Effect) -> Writer | None:
    """Return the class of a matrix instruction; None for any other."""
    return _named(one.name) if one.unit is Unit.MATRIX and one.operands else None


def accumulator(one: Effect) -> Span:
    """Return the registers that a matrix instruction adds to."""
    if one.name.startswith("v_smfmac"):
        return one.operands[0]
    return one.operands[3] if len(one.operands) > 3 else range(0)


def factors(one: Effect) -> list[int]:
    """Return the registers that a matrix instruction multiplies."""
    spans = [*one.operands[1:3], *(one.operands[3:] if one.name.startswith("v_smfmac") else one.operands[4:])]
    return [n for span in spans for n in span]
