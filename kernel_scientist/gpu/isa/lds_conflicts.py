"""LDS bank conflicts of AMD assembly, from the addresses of the first wave's lanes.

Addresses are integer arithmetic on the lane's number, so the code is executed once, in the order of the text, for 64
lanes. Unknown scalars count as zero where they are terms of an address: they move all lanes alike, which changes no
conflict. Anything else that is unknown makes the address unknown, and that access costs nothing extra.
"""

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

LANES, BANKS, WORD = 64, 32, 4
"""Lanes of a wave; banks of the LDS of CDNA2 and CDNA3, and their width in bytes (AMD Instinct MI300 ISA guide)."""
ARCHITECTURES = ("gfx90a", "gfx942")
"""What this holds for: gfx950 has 64 banks."""
MOST = 32
"""Registers that one instruction writes."""
Lanes = npt.NDArray[np.int64]
_REGISTER = re.compile(r"([va])(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])$")
_READ = [[*range(a, a + 4), *range(b, b + 4)] for a, b in ((0, 20), (4, 16), (8, 28), (12, 24))]
PHASES = {
    ("read", 16): [[lane + half for lane in phase] for half in (0, 32) for phase in _READ],
    ("write", 16): [[*range(first, first + 8)] for first in range(0, LANES, 8)],
}
"""The lanes that are served together (ROCm's documentation of Composable Kernel, LDS bank conflicts)."""
EVERY_LANE = [[*range(LANES)]]
"""Other accesses: the groups are not documented, so the busiest bank of all lanes gives a lower bound."""
_ACCESS = re.compile(r"ds_(read|write)(2st64|2)?_[biuf](8|16|32|64|96|128)(?!\d)")
_LITERAL = re.compile(r"-?(0x[0-9a-f]{1,8}|0|[1-9]\d{0,9})$")
_OFFSET = re.compile(r"offset[01]?:(\d{1,5})\b")
_ENCODING = re.compile(r"(_e32|_e64)+$")


OPERATIONS: dict[str, tuple[Callable[[Lanes, Lanes, Lanes], Lanes], int, str]] = {
    "v_mov_b32": (lambda a, b, c: a, 1, "a"),
    "v_add_u32": (lambda a, b, c: a + b, 2, "ab"),
    "v_add3_u32": (lambda a, b, c: a + b + c, 3, "abc"),
    "v_sub_u32": (lambda a, b, c: a - b, 2, "ab"),
    "v_subrev_u32": (lambda a, b, c: b - a, 2, "ab"),
    "v_mul_lo_u32": (lambda a, b, c: a * b, 2, ""),
    "v_mul_u32_u24": (lambda a, b, c: a * b, 2, ""),
    "v_mad_u32_u24": (lambda a, b, c: a * b + c, 3, "c"),
    "v_lshlrev_b32": (lambda a, b, c: b << (a & 31), 2, "b"),
    "v_lshrrev_b32": (lambda a, b, c: b >> (a & 31), 2, "b"),
    "v_lshl_add_u32": (lambda a, b, c: (a << (b & 31)) + c, 3, "ac"),
    "v_add_lshl_u32": (lambda a, b, c: (a + b) << (c & 31), 3, "ab"),
    "v_lshl_or_b32": (lambda a, b, c: a << (b & 31) | c, 3, "ac"),
    "v_and_b32": (lambda a, b, c: a & b, 2, ""),
    "v_and_or_b32": (lambda a, b, c: a & b | c, 3, "c"),
    "v_or_b32": (lambda a, b, c: a | b, 2, "ab"),
    "v_or3_b32": (lambda a, b, c: a | b | c, 3, "abc"),
    "v_xor_b32": (lambda a, b, c: a ^ b, 2, "ab"),
    "v_xad_u32": (lambda a, b, c: (a ^ b) + c, 3, "abc"),
    "v_bfe_u32": (lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1), 3, "a"),
}
"""Address arithmetic by LLVM's names: the operation, its operands, and those that may be unknown scalars."""


class Wave:
    """A wave's vector registers, as far as they are known."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lanes | None] = {"v0": np.arange(LANES, dtype=np.int64)}
        self._scalars: dict[str, int] = {}

    def conflicts(self, mnemonic: str, operands: str) -> int:
        """Execute one instruction; return the cycles that bank conflicts add to it, 0 if its address is unknown."""
        name, parts = _ENCODING.sub("", mnemonic), [part.strip() for part in operands.split(",")]
        if (access := _ACCESS.match(name)) is not None:
            is_read = access[1] == "read"
            at = 1 if is_read else 0
            address = self._known(parts[at].split(" ")[0]) if len(parts) > at else None
            if is_read:
                self._write(parts[0], None)
            return 0 if address is None else _cycles(address, access, operands)
        if name.startswith("s_"):
            self._scalars.pop(parts[0], None)
            if name in ("s_mov_b32", "s_movk_i32") and (value := _number(parts[-1])) is not None:
                self._scalars[parts[0]] = value
        elif name in OPERATIONS:
            self._write(parts[0], self._result(name, parts[1:]))
        else:
            self._write(parts[0], None)
        return 0

    def _result(self, name: str, operands: list[str]) -> Lanes | None:
        work, count, terms = OPERATIONS[name]
        values: list[Lanes] = []
        for letter, operand in zip("abc", operands, strict=False):
            value = self._known(operand)
            if value is None and operand.startswith("s") and letter in terms:
                value = np.zeros(LANES, dtype=np.int64)
            if value is None:
                return None
            values.append(value)
        if len(values) != count:
            return None
        return work(*values, *[values[0]] * (3 - count)) & 0xFFFFFFFF

    def _known(self, operand: str) -> Lanes | None:
        if operand in self._lanes:
            return self._lanes[operand]
        number = self._scalars.get(operand, _number(operand))
        return None if number is None else np.full(LANES, number & 0xFFFFFFFF, dtype=np.int64)

    def _write(self, operand: str, value: Lanes | None) -> None:
        if (found := _REGISTER.match(operand)) is not None:
            kind, one, first, last = found.groups()
            numbers = [one] if one else range(int(first), min(int(last), int(first) + MOST - 1) + 1)
            self._lanes |= {f"{kind}{number}": value for number in numbers}


def _cycles(address: Lanes, access: re.Match[str], operands: str) -> int:
    """Return the cycles beyond those of an access without conflicts; `ds_read2` and `ds_write2` are two accesses."""
    pair, size = access[2], int(access[3]) // 8
    unit = size * (64 if pair == "2st64" else 1) if pair else 1
    offsets = [unit * int(number) for number in _OFFSET.findall(operands)]
    missing = [0] * ((2 if pair else 1) - len(offsets))  # an offset of zero is not printed
    phases = PHASES.get((access[1], size), EVERY_LANE)
    return sum(_extra(address[phase] + offset, size) for offset in offsets + missing for phase in phases)


def _extra(addresses: Lanes, size: int) -> int:
    """Return the cycles of a phase beyond those that it needs without conflicts: one for each word of a bank."""
    words = (addresses[:, None] + np.arange(0, max(size, WORD), WORD)) // WORD
    busiest = np.bincount(np.unique(words) % BANKS, minlength=BANKS).max()
    return max(0, int(busiest) - words.size // BANKS)


def _number(text: str) -> int | None:
    return int(text, 0) if _LITERAL.match(text) else None
