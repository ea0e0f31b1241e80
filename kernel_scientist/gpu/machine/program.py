"""A listing laid out in memory and packed for the native library.

Instruction n lies at `CODE + 4 n`; data lie in one array. Runs in workers: standard library and numpy only.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_scientist.gpu.machine import lacking
from kernel_scientist.gpu.machine import modifiers as modifier
from kernel_scientist.gpu.machine import operands as operand
from kernel_scientist.gpu.machine.listing import Data, Listing, Statement
from kernel_scientist.gpu.machine.modifiers import Modifiers
from kernel_scientist.gpu.machine.operands import Kind, Operand, Symbol, Written

CODE = 0x7FFF0003 << 32
"""As in `native/machine.h`."""
Array = np.ndarray[Any, np.dtype[Any]]
OPERAND = np.dtype(
    [("kind", "u1"), ("modifiers", "u1"), ("registers", "u1"), ("written", "u1"), ("index", "i4"), ("integer", "i8"),
     ("real", "f8")], align=True,
)  # fmt: skip
MOST_OPERANDS = 6
PACKED = np.dtype(
    [("row", "i4"), ("offset", "i4"), ("offset1", "i4"), ("flags", "u4"), ("dpp", "i4"), ("row_mask", "u1"),
     ("bank_mask", "u1"), ("operands", "u1"), ("omod", "u1"), ("sdwa", "u1", 4), ("op_sel", "u1"), ("op_sel_hi", "u1"),
     ("neg_lo", "u1"), ("neg_hi", "u1"), ("cbsz", "u1"), ("abid", "u1"), ("blgp", "u1"), ("reserved", "u1"),
     ("reserved1", "i4"), ("operand", OPERAND, MOST_OPERANDS)], align=True,
)  # fmt: skip
REFUSED = "refused"
"""The row of instructions that the table lacks: executing one is a finding."""
_ENCODING = re.compile(r"(?:_(?:e32|e64|dpp|sdwa|vgprcd|gfx9))+$")
_WITHOUT = re.compile(
    r"s_(?:waitcnt\w*|nop|setprio|icache_inv|dcache_\w+|sleep|barrier|endpgm|code_end|sethalt|sendmsg\w*|trap"
    r"|inst_prefetch)$|buffer_(?:wb|inv)\w*$"
)
"""Instructions whose operands say nothing to the machine."""
_PACKED = re.compile(r"v_(?:pk_|fma_mix|mad_mix|dot\d|mfma|smfmac)")
_MIXED = re.compile(r"v_(?:fma|mad)_mix")
_NARROW = re.compile(r"v_cvt_(?:pk|sr)_[fb]f?[p8]\w*_f32$")
_INDEXED = re.compile(r"gpr_idx\(([\w,]*)\)")
_INDEXES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
_JUMP = re.compile(r"s_(?:c?branch|setpc|swappc|call)")
_HARDWARE = re.compile(r"hwreg\((\w+)(?:,\s*(\d+),\s*(\d+))?\)")
_REGISTERS = {"HW_REG_MODE": 1, "HW_REG_STATUS": 2, "HW_REG_TRAPSTS": 3, "HW_REG_HW_ID": 4, "HW_REG_GPR_ALLOC": 5,
              "HW_REG_LDS_ALLOC": 6, "HW_REG_IB_STS": 7, "HW_REG_XCC_ID": 20}  # fmt: skip


class ProgramError(ValueError):
    """The code cannot be loaded: a symbol is not defined, or an instruction cannot be read."""


@dataclass(frozen=True)
class Program:
    """Code and data, ready to be loaded."""

    packed: Array
    data: Array
    """Bytes of all data."""
    symbols: dict[str, tuple[int, int]]
    """Offset in `data` and size, by symbol."""
    registers: int
    """Vector registers that the code names, accumulation registers from 256 on."""
    missing: tuple[int, ...]
    """Instructions that the table lacks."""


def base_name(mnemonic: str) -> str:
    """Return a mnemonic without the suffixes of its encoding."""
    return _ENCODING.sub("", mnemonic)


def packed(listing: Listing, rows: dict[str, int]) -> Program:
    """Lay a listing out. `rows`: numbers of the table's rows by mnemonic. Raises ProgramError."""
    layout = _Layout(listing)
    instructions = np.zeros(len(listing.statements), PACKED)
    highest, missing, counter, indexing = 3, list[int](), 0, False
    for number, statement in enumerate(listing.statements):
        name = base_name(statement.mnemonic)
        try:
            found, extra = _read(statement, name)
        except ValueError as error:
            raise ProgramError(f"line {statement.line}: {statement.mnemonic} {statement.operands}: {error}") from error
        counter = number + 1 if name == "s_getpc_b64" else counter
        indexing = name == "s_set_gpr_idx_on" or (indexing and name != "s_set_gpr_idx_off")
        if indexing and _JUMP.match(name):
            raise ProgramError(f"line {statement.line}: {name} where M0 is added to the numbers of registers")
        extra.flags |= modifier.INDEXED if indexing and name.startswith("v_") else 0
        known = name in rows and not lacking.foreign(name, listing.arch)
        if not known:
            missing.append(number)
        found = [layout.resolved(one, counter, statement) if one.symbol is not None else one for one in found]
        for one in found:
            if one.kind is Kind.VECTOR:
                highest = max(highest, one.index + one.registers)
        instructions[number] = _pack(rows[name if known else REFUSED], name, found, extra)
    return Program(instructions, layout.data, layout.symbols, highest, tuple(missing))


def _read(statement: Statement, name: str) -> tuple[list[Operand], Modifiers]:
    """Return an instruction's operands and modifiers."""
    if _WITHOUT.match(name):
        return [], Modifiers()
    parts = operand.split(statement.operands) if statement.operands else []
    if name.startswith(("s_getreg", "s_setreg")):
        return [_hardware(part) if part.startswith("hwreg") else operand.parse(part) for part in parts], Modifiers()
    if name.startswith("s_set_gpr_idx"):
        return [_indexes(part) or operand.parse(part) for part in parts], Modifiers()
    if not parts:
        return [], Modifiers()
    last = parts[-1]
    end = _end(last)
    texts = [*parts[:-1], last[:end]]
    return [operand.parse(text) for text in texts if text], modifier.parse(last[end:])


def _hardware(text: str) -> Operand:
    found = _HARDWARE.match(text)
    if found is None or not (found[1] in _REGISTERS or found[1].isdigit()):
        raise operand.OperandError(f"hardware register {text!r} is not known")
    number = _REGISTERS.get(found[1]) or int(found[1])
    return Operand(Kind.CONSTANT, integer=number | int(found[2] or 0) << 6 | (int(found[3] or 32) - 1) << 11)


def _indexes(text: str) -> Operand | None:
    """Return the operands to be indexed as a constant of four bits, if the text names them."""
    found = _INDEXED.match(text)
    if found is None:
        return None
    return Operand(Kind.CONSTANT, integer=sum(_INDEXES[part] for part in found[1].split(",") if part))


def _end(text: str) -> int:
    """Return where the last operand ends and the modifiers begin."""
    depth = 0
    for place, sign in enumerate(text):
        if sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif sign == " " and not depth:
            return place
    return len(text)


def _pack(row: int, name: str, found: list[Operand], extra: Modifiers) -> tuple[Any, ...]:
    flags = extra.flags | (modifier.DPP if extra.dpp >= 0 else 0)
    sources = len(found) - 1
    select = sum(1 << place for place, bit in enumerate(extra.op_sel) if bit)
    if not _PACKED.match(name) and extra.op_sel:
        if (len(extra.op_sel) == sources + 1 and not _NARROW.match(name)) or (len(extra.op_sel) == 3 and sources == 2):
            select = select & ((1 << sources) - 1) | (8 if extra.op_sel[-1] else 0)
        flags |= 0 if _NARROW.match(name) else modifier.OP_SEL
    high = extra.op_sel_hi
    select_high = (0 if _MIXED.match(name) else 7) if high is None else sum(1 << p for p, bit in enumerate(high) if bit)
    operands = [
        (int(o.kind), o.modifiers, o.registers, int(o.written), o.index, o.integer, o.real)
        for o in found[:MOST_OPERANDS]
    ]
    operands += [(0, 0, 0, 0, 0, 0, 0.0)] * (MOST_OPERANDS - len(operands))
    return (
        row, extra.offset, extra.offset1, flags, extra.dpp, extra.row_mask, extra.bank_mask, len(found), extra.omod,
        extra.sdwa, select, select_high, extra.neg_lo, extra.neg_hi, extra.cbsz, extra.abid, extra.blgp, 0, 0, operands,
    )  # fmt: skip


class _Layout:
    """Places data in one array and resolves symbols."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self.symbols: dict[str, tuple[int, int]] = {}
        self._tables: dict[str, int] = {}
        wanted = sorted(
            {name for s in listing.statements for name in re.findall(r"([\w$.]+)@gotpcrel32@lo", s.operands)}
        )
        size = 0
        for name, data in listing.data.items():
            size = -(-size // data.align) * data.align
            self.symbols[name] = (size, len(data.content))
            size += len(data.content)
        size = -(-size // 16) * 16
        for name in wanted:
            self._tables[name] = size
            size += 8
        self.data = np.zeros(max(size, 16), np.uint8)
        for name, data in listing.data.items():
            self._fill(self.symbols[name][0], data)
        for name, place in self._tables.items():
            self.data[place : place + 8] = np.frombuffer(self._address(name, "").to_bytes(8, "little"), np.uint8)

    def _fill(self, start: int, data: Data) -> None:
        self.data[start : start + len(data.content)] = np.frombuffer(bytes(data.content), np.uint8)
        for offset, name, added in data.references:
            address = self._address(name, "in the data") + added
            self.data[start + offset : start + offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)

    def _address(self, name: str, where: str) -> int:
        if name in self.symbols:
            return int(self.data.ctypes.data) + self.symbols[name][0]
        if name in self._listing.labels:
            return CODE + 4 * self._listing.labels[name]
        raise ProgramError(f"{name!r} is used {where} and not defined: the code could not be loaded".replace("  ", " "))

    def resolved(self, one: Operand, counter: int, statement: Statement) -> Operand:
        """Return a reference as a label or a constant. `counter`: the instruction after the last `s_getpc_b64`."""
        symbol = one.symbol
        assert symbol is not None
        where = f"in line {statement.line}"
        if symbol.relocation == "":
            if symbol.name in self._listing.labels:
                return Operand(Kind.LABEL, self._listing.labels[symbol.name])
            return self._shared(symbol, where)
        if symbol.relocation == "abs32" and symbol.name in self._listing.shared:
            return self._shared(symbol, where)
        if symbol.relocation == "abs32":
            value = self._address(symbol.name, where)
        elif symbol.relocation == "gotpcrel32":
            value = int(self.data.ctypes.data) + self._tables[symbol.name] - (CODE + 4 * counter)
        else:
            # The text adds what lies between the program counter and the field itself: 4 and 12 bytes.
            added = one.integer - (12 if symbol.high else 4)
            value = self._address(symbol.name, where) + added - (CODE + 4 * counter)
        value &= (1 << 64) - 1
        return Operand(
            Kind.CONSTANT, written=Written.INTEGER, integer=value >> 32 if symbol.high else value & 0xFFFFFFFF
        )

    def _shared(self, symbol: Symbol, where: str) -> Operand:
        """Return the offset of dynamic LDS: behind the largest static part."""
        if symbol.name not in self._listing.shared:
            raise ProgramError(f"{symbol.name!r} is used {where} and not defined: the code could not be loaded")
        static = max((kernel.lds_bytes for kernel in self._listing.kernels.values()), default=0)
        return Operand(Kind.CONSTANT, integer=-(-static // 16) * 16)
