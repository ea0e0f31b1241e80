"""Vector instructions with every kind of operand and modifier: their text, and what they must do to the registers.

Order of steps, from AMD's ISA document: select part or lane of a source (SDWA, DPP, op_sel), |x|, -x, compute, output
modifier (times 2, 4, 1/2), clamp, write the selected part where EXEC and DPP allow it.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from tests.gpu.machine import lanes
from tests.gpu.machine.harness import LANES, Array, Case, active, random_image, set_mask
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import BITS, DTYPE, raw, tuples, typed

WAVES = 8
EXEC = 18
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
OMOD = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}
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
            parts += [f"{name}:{value}" for name, value in zip(names, self.sdwa, strict=False)]
        if self.dpp is not None:
            parts.append(self.dpp.text())
        parts += [f"op_sel:[{','.join(map(str, self.op_sel))}]"] if self.op_sel else []
        parts += ["clamp"] if self.clamp else []
        parts += [self.omod] if self.omod else []
        return " ".join(parts)

    def case(self) -> Case:
        return Case(self.text(), self.v, self.s)


def make(name: str, row: Row, encoding: str, seed: int, plain: bool = False) -> Instance:
    """An instance with operands of all kinds; `plain`: vector registers without modifiers, all lanes active."""
    random = Random(f"{name}{encoding}{seed}")
    v, s = random_image(WAVES, random.randrange(1 << 30))
    count = WAVES * LANES
    kinds = (*row.sources, row.to) if row.onto else row.sources
    values = tuples(kinds, count, random.randrange(1 << 30))
    if row.within:
        values = [_limited(x, kind, row.within) for x, kind in zip(values, kinds, strict=True)]
    sources, scalar_free = list[Source](), True
    for place, kind in enumerate(row.sources):
        allowed = not plain and encoding != "_dpp" and (place == 0 or encoding != "_e32")
        choice = random.choice(("vector", "vector", "scalar", "constant")) if allowed else "vector"
        if encoding == "_sdwa" and choice == "constant":
            choice = "vector"
        if choice == "constant" and (constant := _constant(kind, random, encoding)) is not None:
            sources.append(Source(constant[0], np.full(count, constant[1], np.uint64), vector=False))
            continue
        if choice == "scalar" and scalar_free:
            scalar_free = False
            sources.append(_scalar(s, place, kind, values[place]))
            continue
        first = 2 + 2 * place
        put(v, first, kind, values[place])
        sources.append(Source(registers("v", first, kind), loaded(v, first, kind)))
    if row.onto:
        put(v, 0, row.to, values[-1])
    destination = registers("v", 0, row.to)
    if not plain and not row.onto and random.random() < 0.3:  # over a source
        same = [k for k, x in enumerate(sources) if x.vector and BITS[row.sources[k]] >= BITS[row.to]]
        if same:
            destination = registers("v", 2 + 2 * random.choice(same), row.to)
    instance = Instance(name, row, encoding, sources, destination, v, s)
    if not plain:
        _modify(instance, random)
    elif encoding == "_dpp":
        instance.dpp = lanes.any_dpp(random, 64 in map(BITS.__getitem__, (row.to, *row.sources)))
    return instance


def _limited(x: Array, kind: str, most: float) -> Array:
    value = typed(x, kind)
    value = np.where(np.isfinite(value), value, 0.25)
    return raw(np.where(np.abs(value) > most, np.remainder(value, most), value).astype(DTYPE[kind]), kind)


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


def _scalar(s: Array, place: int, kind: str, values: Array) -> Source:
    first = 2 + 2 * place
    chosen = values.reshape(WAVES, LANES)[:, 0]
    s[:, first] = chosen & FULL
    if BITS[kind] == 64:
        s[:, first + 1] = chosen >> np.uint64(32)
    return Source(registers("s", first, kind), np.repeat(chosen, LANES), vector=False)


_FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
TURN = "0.15915494"
"""1 / (2 pi), which has an encoding of its own."""


def _constant(kind: str, random: Random, encoding: str) -> tuple[str, int] | None:
    bits = BITS[kind]
    most = (1 << bits) - 1
    if encoding == "_e32" and bits < 64 and random.random() < 0.5:
        value = (
            random.choice((0x3F9D70A4, 0x80000000, 0xFFFFFF, 0x12345678))
            if bits == 32
            else random.choice((0x3555, 0xFBFF, 0x8123))
        )
        return hex(value), value
    if kind[0] == "f" and random.random() < 0.7:
        if random.random() < 0.2:
            value = {"f16": 0x3118, "f32": 0x3E22F983, "f64": 0x3FC45F306DC9C882}[kind]
            return (TURN if kind != "f64" else "0.15915494309189532"), value
        number = random.choice(_FLOATS)
        return str(number), int(raw(np.array([number], DTYPE[kind]), kind)[0])
    if kind in ("u32", "i32") and random.random() < 0.2:
        return "2.0", 0x40000000
    number = random.choice((0, 1, 2, 63, 64, -1, -16))
    return str(number), number & most


def _modify(instance: Instance, random: Random) -> None:
    row, encoding = instance.row, instance.encoding
    floats = [kind[0] == "f" for kind in row.sources]
    if encoding in ("_e64", "_sdwa", "_dpp", "_vop3") and row.form != "vop3p":
        for source, is_float in zip(instance.sources, floats, strict=True):
            if is_float and (source.vector or source.text.startswith("s")):
                source.neg, source.abs = random.random() < 0.4, random.random() < 0.3
    if encoding in ("_e64", "_vop3") and row.form != "vop3p":
        if row.to[0] == "f":
            instance.omod = random.choice(("", "", *OMOD))
            instance.clamp = random.random() < 0.3
        elif row.saturates:
            instance.clamp = random.random() < 0.5
        _select_halves(instance, random)
    elif row.form == "vop3p":
        instance.clamp = row.saturates and random.random() < 0.5
    if encoding == "_sdwa":
        count = len(row.sources)
        instance.sdwa = (
            random.choice(SELECTIONS),
            random.choice(UNUSED),
            *(random.choice(SELECTIONS) for _ in range(count)),
        )
        for source, kind in zip(instance.sources, row.sources, strict=True):
            if kind[0] in "ui" and random.random() < 0.5:
                source.sext = True
    if encoding == "_dpp":
        wide = 64 in (BITS[row.to], *(BITS[kind] for kind in row.sources))
        instance.dpp = lanes.any_dpp(random, wide)
    if random.random() < 0.5:
        bits = np.random.default_rng(random.randrange(1 << 30)).random((WAVES, LANES)) < random.choice((0.1, 0.5, 0.9))
        if random.random() < 0.1:
            bits[:] = False
        set_mask(instance.s, EXEC, bits)


def _select_halves(instance: Instance, random: Random) -> None:
    row = instance.row
    if row.form != "vop3" or "16" not in "".join(row.sources) or random.random() < 0.4:
        return
    chosen = [
        random.randrange(2) if BITS[kind] == 16 and source.vector else 0
        for kind, source in zip(row.sources, instance.sources, strict=True)
    ]
    instance.op_sel = (*chosen, random.randrange(2) if BITS[row.to] == 16 else 0)


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
        if instance.omod:
            value = value * DTYPE[row.to](OMOD[instance.omod])
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
    if unused == "UNUSED_PRESERVE":
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
        scale = {"": 1.0, **OMOD}[instance.omod]
        allowed = row.ulps * np.spacing(np.abs(b / scale)) * scale + row.absolute
        near = np.abs(a.astype(np.float64) - b) <= np.where(np.isfinite(allowed), allowed, 0)
    near |= np.isnan(a) & np.isnan(b)
    if row.to == "f16":  # the other half must be right as well
        rest = np.uint32(0xFFFF if shift else 0xFFFF0000)
        near &= (v[:, first] & rest) == (want[:, first] & rest) if not row.high_unknown else True
    return near
