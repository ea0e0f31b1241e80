"""What a CPU kernel's hot loop computes with: width, sums, spills, gathers and calls, from its x86 assembly.

The text is objdump's in AT&T syntax, whose last operand is the destination, as `compilers.disassembly` keeps it.
"""

import re
from dataclasses import dataclass

from kernel_scientist.compilers import disassembly

_PACKED = re.compile(
    r"^v?(?:fn?m(?:add|sub)\w*|add|sub|mul|div|max|min|sqrt|dpbf16)p[sdh]\b|^vpdp|^v?pm(?:add|ull)|^v?padd"
)
_SCALAR = re.compile(r"^v?(?:fn?m(?:add|sub)\w*|add|sub|mul|div|max|min|sqrt)s[sdh]\b")
_ADDS = re.compile(r"^v?(?:fn?m(?:add|sub)\w*|add|max|min|dpbf16|pdp|padd)(?:[ps][sdh]|[bwdq]|busds?|wssds?)\b")
_FUSED = re.compile(r"^v(?:fn?m(?:add|sub)|dpbf16|pdp)")
_REGISTER = re.compile(r"%([xyz]mm\d+)")
_CALL = re.compile(r"^call")
BYTES = {"z": 64, "y": 32, "x": 16}
"""Bytes of a vector register by the first letter of its name."""


@dataclass(frozen=True)
class HotLoop:
    """What a hot loop computes with; None where a part of the loop is not kept."""

    scalar: bool
    """Whether more of its arithmetic is on single elements than on vectors."""
    bytes: int
    """Of the widest operands on which it computes: 4 or 8 if scalar."""
    sums: int | None
    """Registers in which it adds up from one iteration to the next; 0 if there is none."""
    spills: int
    gathers: int
    calls: int


def read(text: str) -> HotLoop | None:
    """Return what a hot loop computes with; None without one, or where it has no arithmetic that is known here."""
    lines = [line for line in text.splitlines() if not line.startswith("...")]
    packed, scalar = ([line for line in lines if kind.search(line)] for kind in (_PACKED, _SCALAR))
    if not packed and not scalar:
        return None
    classes = [name for line in lines for name in disassembly.classes(line)]
    is_scalar = len(scalar) > len(packed)
    elements = 8 if any(re.match(r"\S+sd\b", line) for line in scalar) else 4
    widths = [BYTES[name[0]] for line in packed for name in _REGISTER.findall(line)]
    return HotLoop(
        scalar=is_scalar,
        bytes=elements if is_scalar or not widths else max(widths),
        sums=_sums(lines) if len(lines) == len(text.splitlines()) else None,
        spills=classes.count("vector spill"),
        gathers=classes.count("gather"),
        calls=sum(bool(_CALL.match(line)) for line in lines),
    )


def _sums(lines: list[str]) -> int:
    """Return how many registers are added to, and otherwise not written, in a loop."""
    added, written = set[str](), set[str]()
    for line in lines:
        registers = [name[1:] for name in _REGISTER.findall(line)]  # without x, y or z: they are parts of one another
        if not registers or not line.rstrip().endswith(f"mm{registers[-1].removeprefix('mm')}"):
            continue  # it writes memory, or no vector register
        kept = _ADDS.match(line) and (_FUSED.match(line) or registers[-1] in registers[:-1] or not line.startswith("v"))
        (added if kept else written).add(registers[-1])
    return len(added - written)
