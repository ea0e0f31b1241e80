"""Operands of AMD GPU assembly, as LLVM prints them.

Source: LLVM, "Syntax of AMDGPU Instruction Operands" and "... Modifiers". Runs in workers: standard library only.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

ACCUMULATION = 256
"""Number of the first accumulation register (`a0`), after `v255`."""


class Kind(IntEnum):
    """What an operand is; as in `native/machine.h`."""

    NONE = 0
    VECTOR = 1
    SCALAR = 2
    CONSTANT = 3
    LABEL = 4
    OFF = 5


class Written(IntEnum):
    """How a constant was written: its bits depend on that and on the operand's type."""

    INTEGER = 0
    LITERAL = 1
    FLOAT = 2


NEG, ABS, SEXT = 1, 2, 4
SCALARS = {
    "flat_scratch": 102, "flat_scratch_lo": 102, "flat_scratch_hi": 103, "xnack_mask": 104, "xnack_mask_lo": 104,
    "xnack_mask_hi": 105, "vcc": 106, "vcc_lo": 106, "vcc_hi": 107, "m0": 124, "exec": 126, "exec_lo": 126,
    "exec_hi": 127, "scc": 128, "src_scc": 128, "src_shared_base": 130, "src_private_base": 132, "null": 134,
}  # fmt: skip
"""Numbers of named scalar registers; those from 128 on are the machine's own."""
_PAIRS = frozenset(("vcc", "exec", "flat_scratch", "xnack_mask", "src_shared_base", "src_private_base"))
_REGISTER = re.compile(r"(v|s|a|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])$")
_LIST = re.compile(r"\[((?:[vsa]\d+)(?:,\s*[vsa]\d+)*)\]$")
_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?$")
_SYMBOL = re.compile(r"([\w$.]+)(?:@(\w+)@(lo|hi)|@(\w+))?\s*([+-]\s*(?:0x)?[\da-fA-F]+)?$")


@dataclass(frozen=True)
class Symbol:
    """A reference to an address that is known when the program is laid out."""

    name: str
    relocation: str
    """`rel32`, `abs32`, `gotpcrel32`, or empty for a plain label."""
    high: bool


@dataclass(frozen=True)
class Operand:
    """One operand."""

    kind: Kind
    index: int = 0
    registers: int = 1
    modifiers: int = 0
    written: Written = Written.INTEGER
    integer: int = 0
    real: float = 0.0
    symbol: Symbol | None = None


class OperandError(ValueError):
    """An operand cannot be read."""


def parse(text: str) -> Operand:
    """Return the operand that is written so. Raises OperandError."""
    modifiers, text = _modified(text.strip())
    if (found := _REGISTER.match(text)) is not None:
        kind, one, first, last = found.groups()
        start = int(one if one is not None else first)
        count = int(last) - start + 1 if last is not None else 1
        base = {"v": 0, "a": ACCUMULATION, "s": 0, "ttmp": 108}[kind]
        return Operand(Kind.VECTOR if kind in "va" else Kind.SCALAR, base + start, count, modifiers)
    if text in SCALARS:
        return Operand(Kind.SCALAR, SCALARS[text], 2 if text in _PAIRS else 1, modifiers)
    if _INTEGER.match(text):
        hexadecimal = "0x" in text
        number = int(text, 16 if hexadecimal else 10)
        if modifiers & NEG:  # of a number: part of it
            number, modifiers = -number, modifiers & ~NEG
        return Operand(Kind.CONSTANT, 0, 1, modifiers, Written.LITERAL if hexadecimal else Written.INTEGER, number)
    if _FLOAT.match(text):
        real = -float(text) if modifiers & NEG else float(text)
        return Operand(Kind.CONSTANT, 0, 1, modifiers & ~NEG, Written.FLOAT, 0, real)
    if text == "off":
        return Operand(Kind.OFF)
    if (found := _LIST.match(text)) is not None:
        names = [parse(name) for name in found[1].split(",")]
        return Operand(names[0].kind, names[0].index, len(names), modifiers)
    if (found := _SYMBOL.match(text)) is not None:
        name, relocation, half, alone, addend = found.groups()
        offset = int(addend.replace(" ", ""), 0) if addend else 0
        return Operand(Kind.LABEL, integer=offset, symbol=Symbol(name, relocation or alone or "", half == "hi"))
    raise OperandError(f"operand {text!r} cannot be read")


def _modified(text: str) -> tuple[int, str]:
    """Return the modifiers around an operand, and what they surround."""
    modifiers = 0
    while True:
        if text.startswith("-") and not text[1:2].isdigit():
            modifiers, text = modifiers | NEG, text[1:]
        elif text.startswith("|") and text.endswith("|"):
            modifiers, text = modifiers | ABS, text[1:-1]
        elif (found := re.match(r"(neg|abs|sext)\((.*)\)$", text)) is not None:
            modifiers, text = modifiers | {"neg": NEG, "abs": ABS, "sext": SEXT}[found[1]], found[2]
        else:
            return modifiers, text.strip()


def split(text: str) -> list[str]:
    """Split at commas outside of brackets, parentheses, bars and quotes."""
    parts, depth, quoted, start = list[str](), 0, False, 0
    for place, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif sign == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts]
