"""Packed instructions: two operations per lane, with a half of each source and a sign for each of them."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tests.gpu.machine import float_rows, harness
from tests.gpu.machine.float_rows import least, most
from tests.gpu.machine.harness import EXEC, LANES, Array, Case, active, random_image, set_mask
from tests.gpu.machine.values import DTYPE, tuples
from tests.gpu.machine.vectors import WAVES, put

Rule = Callable[..., Any]
Wanted = tuple[Case, Array]


def _wide(f: Rule) -> Rule:
    return lambda *x: f(*(a.astype(np.int64) for a in x))


def _shift(left: bool) -> Rule:
    return lambda a, b: (np.left_shift if left else np.right_shift)(b, a & a.dtype.type(15))


HALVES: dict[str, tuple[str, int, Rule, bool]] = {
    "v_pk_add_f16": ("f16", 2, lambda a, b: a + b, True),
    "v_pk_mul_f16": ("f16", 2, lambda a, b: a * b, True),
    "v_pk_min_f16": ("f16", 2, least, True),
    "v_pk_max_f16": ("f16", 2, most, True),
    "v_pk_fma_f16": ("f16", 3, float_rows.fma, True),
    "v_pk_mul_lo_u16": ("u16", 2, _wide(lambda a, b: a * b), False),
    "v_pk_lshlrev_b16": ("u16", 2, _shift(True), False),
    "v_pk_lshrrev_b16": ("u16", 2, _shift(False), False),
    "v_pk_ashrrev_i16": ("i16", 2, _shift(False), False),
}
"""Type, count of sources, rule, and whether `clamp` is allowed."""
for _n, _f in (("minimum", least), ("maximum", most)):

    def _extreme(a: Array, b: Array, c: Array, f: Rule = _f) -> Array:
        return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), np.float16(np.nan), f(f(a, b), c))

    HALVES[f"v_pk_{_n}3_f16"] = ("f16", 3, _extreme, False)
for _t in ("u16", "i16"):
    HALVES |= {
        f"v_pk_add_{_t}": (_t, 2, _wide(lambda a, b: a + b), True),
        f"v_pk_sub_{_t}": (_t, 2, _wide(lambda a, b: a - b), True),
        f"v_pk_mad_{_t}": (_t, 3, _wide(lambda a, b, c: a * b + c), True),
        f"v_pk_min_{_t}": (_t, 2, np.minimum, False),
        f"v_pk_max_{_t}": (_t, 2, np.maximum, False),
    }
WORDS: dict[str, tuple[int, Rule]] = {
    "v_pk_add_f32": (2, lambda a, b: a + b),
    "v_pk_mul_f32": (2, lambda a, b: a * b),
    "v_pk_fma_f32": (3, float_rows.fma),
}


def half(word: Array, high: int, kind: str) -> Array:
    return (word >> np.uint32(16 * high)).astype(np.uint16).view(DTYPE[kind])


def clamped(x: Array) -> Array:
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def bits_of(random: Random, count: int, one: int = 2) -> list[int]:
    return [random.randrange(one) for _ in range(count)]


def modifiers(random: Random, count: int, signs: bool) -> tuple[dict[str, list[int]], str]:
    """Values of op_sel, op_sel_hi, neg_lo and neg_hi, and their text."""
    plain = random.random() < 0.2
    chosen = {"op_sel": [0] * count, "op_sel_hi": [1] * count, "neg_lo": [0] * count, "neg_hi": [0] * count}
    for name in () if plain else ("op_sel", "op_sel_hi", "neg_lo", "neg_hi") if signs else ("op_sel", "op_sel_hi"):
        chosen[name] = bits_of(random, count)
    default = {"op_sel": 0, "op_sel_hi": 1, "neg_lo": 0, "neg_hi": 0}
    parts = [f"{n}:[{','.join(map(str, x))}]" for n, x in chosen.items() if any(bit != default[n] for bit in x)]
    return chosen, " ".join(["", *parts])


def image(kinds: tuple[str, ...], random: Random) -> tuple[Array, Array]:
    v, s = random_image(WAVES, random.randrange(1 << 30))
    for place, x in enumerate(tuples(kinds, WAVES * LANES, random.randrange(1 << 30))):
        put(v, 2 + place, kinds[place], x)
    lanes = np.random.default_rng(random.randrange(1 << 30)).random((WAVES, LANES)) < random.choice((0.5, 1.0))
    set_mask(s, EXEC, lanes)
    return v, s


def of_halves(name: str, seed: int) -> Wanted:
    kind, count, rule, may_clamp = HALVES[name]
    random = Random(f"{name}{seed}")
    v, s = image((kind,) * 8, random)
    for k in range(3):  # both halves from values with corners
        v[:, 8 + k] = v[:, 2 + k] & 0xFFFF | v[:, 5 + k] << 16
    words, names = [v[:, 8 + k] for k in range(count)], [f"v{8 + k}" for k in range(count)]
    if random.random() < 0.4:
        k = random.randrange(count)
        s[:, 4] = v[:, 8 + k, 0]
        words[k], names[k] = np.repeat(s[:, 4:5], LANES, 1), "s4"
    elif random.random() < 0.4:
        k = random.randrange(count)
        text, value = random.choice(
            (("1.0", 0x3C00), ("-4.0", 0xC400)) if kind == "f16" else (("3", 3), ("-16", 0xFFFFFFF0))
        )
        words[k], names[k] = np.full_like(words[k], value), text
    chosen, text = modifiers(random, count, kind == "f16")
    clamp = may_clamp and random.random() < 0.4
    want = 0
    for h, select, neg in ((0, "op_sel", "neg_lo"), (1, "op_sel_hi", "neg_hi")):
        x = [half(word, chosen[select][k], kind) for k, word in enumerate(words)]
        x = [np.negative(a) if chosen[neg][k] else a for k, a in enumerate(x)]
        with np.errstate(all="ignore"):
            found = rule(*(np.ascontiguousarray(a).reshape(-1) for a in x)).reshape(WAVES, LANES)
        if clamp:
            found = (
                clamped(found)
                if kind == "f16"
                else np.clip(found, np.iinfo(DTYPE[kind]).min, np.iinfo(DTYPE[kind]).max)
            )
        found = found.astype(DTYPE[kind])
        want = want | np.ascontiguousarray(found).view(np.uint16).astype(np.uint32) << np.uint32(16 * h)
    after = v.copy()
    after[:, 0] = np.where(active(s), want, v[:, 0])
    return Case(f"{name} v0, {', '.join(names)}{text}{' clamp' if clamp else ''}", v, s), after


def of_words(name: str, seed: int) -> Wanted:
    count, rule = WORDS[name]
    random = Random(f"{name}{seed}")
    v, s = image(("f32",) * 8, random)
    names = [f"v[{2 + 2 * k}:{3 + 2 * k}]" for k in range(count)]
    pairs = [v[:, 2 + 2 * k : 4 + 2 * k] for k in range(count)]
    if random.random() < 0.4:
        k = random.randrange(count)
        s[:, 4:6] = pairs[k][:, :, 0]
        pairs[k], names[k] = np.repeat(s[:, 4:6, None], LANES, 2), "s[4:5]"
    chosen, text = modifiers(random, count, True)
    clamp = random.random() < 0.3
    after = v.copy()
    for h, select, neg in ((0, "op_sel", "neg_lo"), (1, "op_sel_hi", "neg_hi")):
        x = [np.ascontiguousarray(pair[:, chosen[select][k]]).view(np.float32) for k, pair in enumerate(pairs)]
        x = [np.negative(a) if chosen[neg][k] else a for k, a in enumerate(x)]
        with np.errstate(all="ignore"):
            found = rule(*(a.reshape(-1) for a in x)).reshape(WAVES, LANES)
        found = clamped(found) if clamp else found
        after[:, h] = np.where(active(s), np.ascontiguousarray(found).view(np.uint32), v[:, h])
    return Case(f"{name} v[0:1], {', '.join(names)}{text}{' clamp' if clamp else ''}", v, s), after


def accumulated(seed: int) -> Wanted:
    """v_pk_fmac_f16: the destination is the addend."""
    v, s = image(("pk",) * 4, Random(seed))
    values = tuples(("f16",) * 6, WAVES * LANES, seed)
    for n, register in enumerate((0, 2, 3)):
        put(v, register, "pk", values[n] | values[n + 3] << np.uint64(16))
    want = np.zeros((WAVES, LANES), np.uint32)
    for high in range(2):
        x = [half(np.ascontiguousarray(v[:, n]), high, "f16").reshape(-1) for n in (2, 3, 0)]
        with np.errstate(all="ignore"):
            found = np.ascontiguousarray(float_rows.fma(*x)).view(np.uint16).astype(np.uint32)
        want |= found.reshape(WAVES, LANES) << np.uint32(16 * high)
    after = v.copy()
    after[:, 0] = np.where(active(s), want, v[:, 0])
    return Case("v_pk_fmac_f16 v0, v2, v3", v, s), after


def moved(seed: int) -> Wanted:
    random = Random(seed)
    v, s = image(("u32",) * 4, random)
    low, high = bits_of(random, 2)
    after = v.copy()
    after[:, 0] = np.where(active(s), v[:, 2 + low], v[:, 0])
    after[:, 1] = np.where(active(s), v[:, 4 + high], v[:, 1])
    return Case(f"v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[{low},{high}]", v, s), after


def mixed(name: str, seed: int) -> Wanted:
    """a * b + c of fp32 numbers, or of halves where op_sel_hi says so."""
    random = Random(f"{name}{seed}")
    v, s = image(("f32", "f32", "f32"), random)
    wide = bits_of(random, 3)
    for k, is_half in enumerate(wide):
        if is_half:
            put(v, 2 + k, "pk", tuples(("pk",), WAVES * LANES, seed)[0])
    high, neg, magnitude = bits_of(random, 3), bits_of(random, 3), bits_of(random, 3)
    clamp = random.random() < 0.3
    x, names = [], []
    for k in range(3):
        word = np.ascontiguousarray(v[:, 2 + k])
        value = half(word, high[k], "f16").astype(np.float32) if wide[k] else word.view(np.float32)
        value = np.abs(value) if magnitude[k] else value
        x.append(np.negative(value) if neg[k] else value)
        names.append("-" * neg[k] + (f"|v{2 + k}|" if magnitude[k] else f"v{2 + k}"))
    with np.errstate(all="ignore"):
        found = float_rows.fma(*(a.reshape(-1) for a in x)).reshape(WAVES, LANES)
        found = clamped(found) if clamp else found
        short = np.ascontiguousarray(found.astype(np.float16)).view(np.uint16).astype(np.uint32)
    old = v[:, 0]
    want = {
        "v_fma_mix_f32": np.ascontiguousarray(found).view(np.uint32),
        "v_fma_mixlo_f16": short | old & np.uint32(0xFFFF0000),
        "v_fma_mixhi_f16": short << np.uint32(16) | old & np.uint32(0xFFFF),
    }[name]
    after = v.copy()
    after[:, 0] = np.where(active(s), want, old)
    tail = f"{' clamp' if clamp else ''} op_sel:[{','.join(map(str, high))}] op_sel_hi:[{','.join(map(str, wide))}]"
    return Case(f"{name} v0, {', '.join(names)}{tail.replace(' clamp', '')}{' clamp' if clamp else ''}", v, s), after


def dotted(seed: int) -> Wanted:
    """v_dot2_f32_f16 on small integers, whose sums are exact in any order."""
    random = Random(seed)
    v, s = image(("u32",) * 4, random)
    numbers = np.random.default_rng(seed).integers(-60, 60, (WAVES, 4, LANES)).astype(np.float16)
    halves = np.ascontiguousarray(numbers).view(np.uint16).astype(np.uint32)
    v[:, 2], v[:, 3] = halves[:, 0] | halves[:, 1] << 16, halves[:, 2] | halves[:, 3] << 16
    v[:, 4] = np.random.default_rng(seed).integers(-999, 999, (WAVES, LANES)).astype(np.float32).view(np.uint32)
    neg = {name: bits_of(random, 2) for name in ("neg_lo", "neg_hi")}  # the device allows no selection of halves here
    negative = random.random() < 0.5
    total = np.ascontiguousarray(v[:, 4]).view(np.float32).astype(np.float64) * (-1) ** negative
    for high, signs in enumerate(neg.values()):
        x = [half(v[:, 2 + k], high, "f16").astype(np.float64) * (-1) ** signs[k] for k in range(2)]
        total = total + x[0] * x[1]
    tail = " ".join(f"{name}:[{x[0]},{x[1]},{int(negative and name == 'neg_lo')}]" for name, x in neg.items())
    after = v.copy()
    after[:, 0] = np.where(active(s), total.astype(np.float32).view(np.uint32), v[:, 0])
    return Case(f"v_dot2_f32_f16 v0, v2, v3, v4 {tail}", v, s), after


def cases() -> list[Wanted]:
    found = [of_halves(name, seed) for name in HALVES for seed in range(8)]
    found += [of_words(name, seed) for name in WORDS for seed in range(8)] + [moved(seed) for seed in range(6)]
    mixes = ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
    return (
        found
        + [mixed(name, seed) for name in mixes for seed in range(8)]
        + [accumulated(seed) for seed in range(2)]
        + [dotted(seed) for seed in range(6)]
    )


def same(found: Array, want: Array, name: str) -> Array:
    """Equal bits, or NaN in the same place."""
    kind = "f16" if name.endswith("f16") else "f32"
    per = 2 if kind == "f16" else 1
    views = [np.ascontiguousarray(x).view(DTYPE[kind]) for x in (found, want)]
    equal = np.repeat(found == want, per, -1) | (np.isnan(views[0]) & np.isnan(views[1]))
    halves = [np.ascontiguousarray(x).view(np.uint16 if per == 2 else np.uint32) for x in (found, want)]
    equal |= halves[0] == halves[1]
    return equal.reshape(*found.shape, per).all(-1)


def test_packed_instructions() -> None:
    chosen = cases()
    wrong = []
    for start in range(0, len(chosen), 200):
        batch = chosen[start : start + 200]
        for (one, want), outcome in zip(batch, harness.run([c for c, _ in batch]), strict=True):
            ok = outcome.v == want
            if "f16" in one.text or "f32" in one.text:
                ok[:, :2] |= same(outcome.v[:, :2], want[:, :2], one.text.split()[0])
            if not ok.all():
                place = tuple(np.argwhere(~ok)[0])
                inputs = [hex(one.v[place[0], n, place[2]]) for n in range(2, 11)]
                wrong.append((one.text, place, hex(outcome.v[place]), hex(want[place]), inputs))
    assert not wrong, "\n".join(map(str, wrong[:30]))
