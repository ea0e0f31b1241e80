"""Instances of vector instructions, drawn at random: operands of all kinds, modifiers, masks of lanes."""

from random import Random

import numpy as np

from tests.gpu.machine import lanes
from tests.gpu.machine.harness import EXEC, LANES, Array, random_image, set_mask
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import BITS, DTYPE, raw, tuples, typed
from tests.gpu.machine.vectors import OMOD, SELECTIONS, UNUSED, WAVES, Instance, Source, loaded, put, registers

FULL = np.uint64(0xFFFFFFFF)


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
            random.choice(SELECTIONS) if not row.ulps else "DWORD",  # a part of an inexact number has no tolerance
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
    if row.form != "vop3" or "legacy" in instance.name or "16" not in "".join(row.sources) or random.random() < 0.4:
        return
    chosen = [
        random.randrange(2) if BITS[kind] == 16 and source.vector else 0
        for kind, source in zip(row.sources, instance.sources, strict=True)
    ]
    instance.op_sel = (*chosen, random.randrange(2) if BITS[row.to] == 16 else 0)
