"""Comparisons: every condition and type, all encodings, into VCC or other registers, with EXEC for v_cmpx."""

import functools
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from tests.gpu.machine import float_rows, harness
from tests.gpu.machine.harness import EXEC, LANES, VCC, Array, Case, active, random_image, set_mask
from tests.gpu.machine.values import BITS, tuples, typed
from tests.gpu.machine.vectors import SELECTIONS, WAVES, Source, loaded, part_of, put, registers, signed

ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "f": lambda a, b: np.zeros(a.shape, bool),
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
INTEGERS = ORDERED | {"ne": lambda a, b: a != b, "t": lambda a, b: np.ones(a.shape, bool)}
FLOATS = ORDERED | {
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~np.isnan(a) & ~np.isnan(b),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "tru": lambda a, b: np.ones(a.shape, bool),
}


def of_class(a: Array, wanted: Array) -> Array:
    """Bits: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf."""
    negative, size = np.signbit(a), np.abs(a)
    tiny = np.finfo(a.dtype).tiny
    bit = np.select(
        [float_rows.signalling(a), np.isnan(a), np.isinf(a), size >= tiny, size > 0],
        [0, 1, np.where(negative, 2, 9), np.where(negative, 3, 8), np.where(negative, 4, 7)],
        np.where(negative, 5, 6),
    )
    return (wanted >> bit.astype(wanted.dtype) & 1).astype(bool)


def conditions() -> dict[str, tuple[tuple[str, str], Callable[[Array, Array], Array]]]:
    """Types of the operands and rule, by the part of the mnemonic after v_cmp_ or v_cmpx_."""
    found = {f"{c}_{t}": ((t, t), rule) for t in ("f16", "f32", "f64") for c, rule in FLOATS.items()}
    for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
        found |= {f"{c}_{t}": ((t, t), rule) for c, rule in INTEGERS.items()}
    return found | {f"class_{t}": ((t, "u32"), of_class) for t in ("f16", "f32", "f64")}


def case(what: str, prefix: str, encoding: str, seed: int) -> tuple[Case, Array]:
    kinds, rule = conditions()[what]
    random = Random(f"{what}{prefix}{encoding}{seed}")
    v, s = random_image(WAVES, random.randrange(1 << 30))
    values = tuples(kinds, WAVES * LANES, random.randrange(1 << 30))
    sources = []
    for place, kind in enumerate(kinds):
        put(v, 2 + 2 * place, kind, values[place])
        sources.append(Source(registers("v", 2 + 2 * place, kind), loaded(v, 2 + 2 * place, kind)))
    tail = ""
    if encoding != "_e32" and kinds[0][0] == "f":
        for source, kind in zip(sources, kinds, strict=True):
            source.neg, source.abs = (random.random() < 0.4 and kind[0] == "f" for _ in range(2))
    selections = [random.choice(SELECTIONS) for _ in kinds]
    if encoding == "_sdwa":
        for source in sources:
            source.sext = kinds[0][0] != "f" and random.random() < 0.5
        tail = f" src0_sel:{selections[0]} src1_sel:{selections[1]}"
    to = "vcc" if encoding == "_e32" or random.random() < 0.3 else "s[10:11]"
    lanes = np.random.default_rng(random.randrange(1 << 30)).random((WAVES, LANES)) < random.choice((0.5, 1.0))
    set_mask(s, EXEC, lanes)
    bits = [
        part_of(x.bits, c, x.sext) if encoding == "_sdwa" else x.bits for x, c in zip(sources, selections, strict=True)
    ]
    operands = [signed(typed(b, kind), x) for b, kind, x in zip(bits, kinds, sources, strict=True)]
    result = rule(*operands).reshape(WAVES, LANES) & active(s)
    want = s.copy()
    set_mask(want, VCC if to == "vcc" else 10, result)
    if prefix == "v_cmpx_":
        set_mask(want, EXEC, result)
    text = f"{prefix}{what}{encoding} {to}, {sources[0].written()}, {sources[1].written()}{tail}"
    return Case(text, v, s), want


@functools.cache
def cases() -> list[tuple[Case, Array]]:
    found = []
    for what, (kinds, _) in conditions().items():
        wide = BITS[kinds[0]] == 64
        for prefix in ("v_cmp_", "v_cmpx_"):
            for encoding in ("_e32", "_e64") if wide else ("_e32", "_e64", "_sdwa"):
                found += [case(what, prefix, encoding, seed) for seed in range(2)]
    return found


@pytest.mark.parametrize("kind", ["16", "32", "64"])
def test_conditions(kind: str) -> None:
    chosen = [
        one
        for one in cases()
        if one[0].text.split()[0].removesuffix("_sdwa")[:-4].endswith(kind)
        or one[0].text.split()[0].endswith(f"{kind}_sdwa")
    ]
    wrong = []
    for start in range(0, len(chosen), 200):
        batch = chosen[start : start + 200]
        for (one, want), outcome in zip(batch, harness.run([c for c, _ in batch]), strict=True):
            if (outcome.s != want).any() or (outcome.v != one.v).any():
                wrong.append((one.text, np.argwhere(outcome.s != want)[:2].tolist()))
    assert not wrong, "\n".join(map(str, wrong[:40]))
