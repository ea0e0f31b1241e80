"""Vector instructions with every kind of operand and modifier: their text, and what they must do to the registers.

Order of steps, from AMD's ISA document: select part or lane of a source (SDWA, DPP, op_sel), |x|, -x, compute, output
modifier (times 2, 4, 1/2), clamp, write the selected part where EXEC and DPP allow it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.gpu.machine import lanes
from tests.gpu.machine.harness import LANES, Array, Case, active
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import BITS, DTYPE, raw, typed

WAVES = 8
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "")
OMOD = ("mul:2", "mul:4", "div:2")
FULL = np.uint64(0xFFFFFFFF)


@dataclass
class Source:
    """How an operand is written and which bits it has in each lane, before its modifiers."""

    text: str
    bits: Array
    vector: bool = True
    neg: bool = False
    abs: bool = False
    sext: bool = False

    def written(self) -> str:
        inner = f"|{self.text}|" if self.abs else f"sext({self.text})" if self.sext else self.text
        return f"-{inner}" if self.neg else inner


@dataclass
class Instance:
    """An instruction of a row, with its operands and modifiers."""

    name: str
    row: Row
    encoding: str
    sources: list[Source]
    destination: str
    v: Array
    s: Array
    omod: str = ""
    clamp: bool = False
    op_sel: tuple[int, ...] = ()
    sdwa: tuple[str, ...] = ()
    """dst_sel, dst_unused, src0_sel, src1_sel."""
    dpp: lanes.Dpp | None = None
    before: Array = field(default_factory=lambda: np.zeros(0))

    def text(self) -> str:
        operands = ", ".join([self.destination, *(source.written() for source in self.sources)])
        parts = [f"{self.name}{self.encoding} {operands}"]
        if self.sdwa:
            names = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
            parts += [f"{name}:{value}" for name, value in zip(names, self.sdwa, strict=False) if value]
        if self.dpp is not None:
            parts.append(self.dpp.text())
        parts += [f"op_sel:[{','.join(map(str, self.op_sel))}]"] if self.op_sel else []
        parts += ["clamp"] if self.clamp else []
        parts += [self.omod] if self.omod else []
        return " ".join(parts)

    def case(self) -> Case:
        return Case(self.text(), self.v, self.s)


def registers(file: str, first: int, kind: str) -> str:
    return f"{file}[{first}:{first + 1}]" if BITS[kind] == 64 else f"{file}{first}"


def put(v: Array, first: int, kind: str, values: Array) -> None:
    """Write operands to registers; the upper half of a 16-bit operand's register stays random."""
    shaped = values.reshape(len(v), LANES)
    if BITS[kind] == 16:
        v[:, first] = v[:, first] & np.uint32(0xFFFF0000) | shaped.astype(np.uint32)
    else:
        v[:, first] = (shaped & FULL).astype(np.uint32)
    if BITS[kind] == 64:
        v[:, first + 1] = (shaped >> np.uint64(32)).astype(np.uint32)


def loaded(v: Array, first: int, kind: str) -> Array:
    low = v[:, first].astype(np.uint64)
    return (low | v[:, first + 1].astype(np.uint64) << np.uint64(32) if BITS[kind] == 64 else low).reshape(-1)


def expected(instance: Instance) -> tuple[Array, Array]:
    """Vector registers after the instruction, and which bits of the destination are known."""
    row, v = instance.row, instance.v
    enabled = active(instance.s)
    operands = []
    for place, (source, kind) in enumerate(zip(instance.sources, row.sources, strict=True)):
        bits = source.bits
        if instance.dpp is not None and place == 0:
            bits, enabled = instance.dpp.moved(bits.reshape(WAVES, LANES), enabled)
            bits = bits.reshape(-1)
        if instance.sdwa:
            bits = part_of(bits, instance.sdwa[2 + place], source.sext)
        if instance.op_sel and instance.op_sel[place]:
            bits = bits >> np.uint64(16)
        operands.append(signed(typed(bits, kind), source))
    first = int(instance.destination.strip("v[").split(":")[0])
    if row.onto:
        operands.append(typed(loaded(v, first, row.to), row.to))
    with np.errstate(all="ignore"):
        result = _finished(row.compute(*operands), instance)
    after = v.copy()
    known = np.full((WAVES, LANES), 0xFFFFFFFF, np.uint32)
    low = (result & FULL).astype(np.uint32).reshape(WAVES, LANES)
    old = v[:, first]
    if instance.sdwa:
        if row.to[0] == "f" and instance.sdwa[0] != "DWORD":  # which NaN it is, no document says
            known[np.isnan(typed(result, row.to)).reshape(WAVES, LANES)] = 0
        low = _placed(low, old, instance.sdwa[0], instance.sdwa[1])
    elif BITS[row.to] == 16:
        if instance.op_sel and instance.op_sel[-1]:
            low = low << np.uint32(16) | old & np.uint32(0xFFFF)
        elif row.keeps_high:
            low = low | old & np.uint32(0xFFFF0000)
        if row.high_unknown:
            known[...] = 0xFFFF0000 if instance.op_sel and instance.op_sel[-1] else 0xFFFF
    after[:, first] = np.where(enabled, low, old)
    if BITS[row.to] == 64:
        high = (result >> np.uint64(32)).astype(np.uint32).reshape(WAVES, LANES)
        after[:, first + 1] = np.where(enabled, high, v[:, first + 1])
    return after, np.where(enabled, known, np.uint32(0xFFFFFFFF))


def part_of(bits: Array, selection: str, sext: bool) -> Array:
    place = SELECTIONS.index(selection)
    width, shift = (8, 8 * place) if place < 4 else (16, 16 * (place - 4)) if place < 6 else (32, 0)
    part = bits >> np.uint64(shift) & np.uint64((1 << width) - 1)
    if sext:
        sign = part >> np.uint64(width - 1) & np.uint64(1)
        part = part + sign * np.uint64((1 << 32) - (1 << width))
    return part & FULL


def signed(value: Array, source: Source) -> Array:
    if value.dtype.kind == "f":
        value = np.abs(value) if source.abs else value
        value = np.negative(value) if source.neg else value
    return value


def _finished(value: Array, instance: Instance) -> Array:
    row = instance.row
    if row.to[0] == "f":
        value = value.astype(DTYPE[row.to])
        if instance.clamp:
            value = np.where(value > 0, np.minimum(value, DTYPE[row.to](1)), DTYPE[row.to](0))
        return raw(value, row.to)
    bits = BITS[row.to]
    if instance.clamp:
        limits = np.iinfo(DTYPE[row.to])
        value = np.clip(value, limits.min, limits.max)
    return value.astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


def _placed(low: Array, old: Array, selection: str, unused: str) -> Array:
    place = SELECTIONS.index(selection)
    if place == 6:
        return low
    width, shift = (8, 8 * place) if place < 4 else (16, 16 * (place - 4))
    field_ = np.uint32(((1 << width) - 1) << shift)
    part = low << np.uint32(shift) & field_
    if unused in ("UNUSED_PRESERVE", ""):  # the assembler's default
        return part | old & ~field_
    if unused == "UNUSED_SEXT":
        above = 32 - shift - width
        return (part << np.uint32(above)).view(np.int32).__rshift__(above).view(np.uint32) if above else part
    return part


def differences(instance: Instance, v: Array, want: Array, known: Array) -> list[Any]:
    """Lanes in which registers differ from what they must be: register, place, operands, found, wanted."""
    row = instance.row
    first = int(instance.destination.strip("v[").split(":")[0])
    wrong = v != want
    ok = (v[:, first] & known) == (want[:, first] & known)
    if row.to[0] == "f":
        ok |= _near(instance, v, want, first)
    wrong[:, first] = ~ok
    if BITS[row.to] == 64:
        pair_ok = ok & (v[:, first + 1] == want[:, first + 1])
        pair_ok |= _near(instance, v, want, first) if row.to[0] == "f" else False
        wrong[:, first] = wrong[:, first + 1] = ~pair_ok
    found = []
    for wave, register, lane in np.argwhere(wrong)[:3]:
        operands = [hex(int(x.bits[wave * LANES + lane])) for x in instance.sources]
        found.append(
            (
                instance.text(),
                int(register),
                int(lane),
                operands,
                hex(v[wave, register, lane]),
                hex(want[wave, register, lane]),
            )
        )
    return found


def _near(instance: Instance, v: Array, want: Array, first: int) -> Array:
    """Lanes whose results are both NaN, or as near as the row allows."""
    row, selection = instance.row, instance.sdwa[0] if instance.sdwa else "DWORD"
    shift = 16 if (instance.op_sel and instance.op_sel[-1]) or selection == "WORD_1" else 0
    if selection not in ("DWORD", "WORD_0", "WORD_1") or (selection != "DWORD" and row.to != "f16"):
        return np.zeros(v[:, 0].shape, bool)
    a, b = (typed(loaded(x, first, row.to) >> np.uint64(shift), row.to).reshape(WAVES, LANES) for x in (v, want))
    with np.errstate(all="ignore"):
        allowed = row.ulps * np.spacing(np.abs(b)) + row.absolute
        near = np.abs(a.astype(np.float64) - b) <= np.where(np.isfinite(allowed), allowed, 0)
    near |= np.isnan(a) & np.isnan(b)
    if row.to == "f16":  # the other half must be right as well
        rest = np.uint32(0xFFFF if shift else 0xFFFF0000)
        near &= (v[:, first] & rest) == (want[:, first] & rest) if not row.high_unknown else True
    return near
