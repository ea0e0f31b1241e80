"""Division by the sequence that LLVM emits is IEEE 754's, and so are its parts (AMD's ISA document)."""

import numpy as np
import pytest

from tests.gpu.machine import float_rows, harness
from tests.gpu.machine.harness import LANES, Array, Case, mask, random_image
from tests.gpu.machine.values import DTYPE, corners, raw, typed
from tests.gpu.machine.vectors import loaded, put

WAVES = 32
NAMES = {"f32": ("v0", "v2", "v4", "v6", "v8", "v10"), "f64": tuple(f"v[{n}:{n + 1}]" for n in range(0, 12, 2))}


PARTS = ("v_div_fixup_f16", "v_div_fixup_legacy_f16")
"""What is tested beside the parts of a division in fp32 and fp64."""


def pairs(kind: str) -> tuple[Array, Array]:
    """Numerators and denominators: all corners, and random exponents, so that quotients overflow and underflow."""
    random = np.random.default_rng(3)
    count = WAVES * LANES
    known = corners(kind)
    found = [np.resize(np.repeat(known, len(known)), count), np.resize(np.tile(known, len(known)), count)]
    bits = np.dtype(DTYPE[kind]).itemsize * 8
    for x in found:
        x[len(known) ** 2 :] = (random.integers(0, 1 << 64, count, np.uint64) & np.uint64((1 << bits) - 1))[
            len(known) ** 2 :
        ]
    return found[0], found[1]


def divide(kind: str) -> str:
    """b in the third name, a in the second: the quotient a / b into the first."""
    to, a, b, den, r, q = NAMES[kind]
    num = "v12" if kind == "f32" else "v[12:13]"
    steps = [
        f"v_div_scale_{kind} {den}, s[10:11], {b}, {b}, {a}",
        f"v_rcp_{kind}_e32 {r}, {den}",
        *([f"v_fma_{kind} {to}, -{den}, {r}, 1.0", f"v_fmac_{kind}_e32 {r}, {to}, {r}"] * (2 if kind == "f64" else 1)),
        f"v_div_scale_{kind} {num}, vcc, {a}, {b}, {a}",
        f"v_mul_{kind}{'_e32' if kind == 'f32' else ''} {q}, {num}, {r}",
    ]
    if kind == "f32":
        steps += [f"v_fma_f32 {to}, -{den}, {q}, {num}", f"v_fmac_f32_e32 {q}, {to}, {r}"]
    steps += [
        f"v_fma_{kind} {to}, -{den}, {q}, {num}",
        f"v_div_fmas_{kind} {to}, {to}, {r}, {q}",
        f"v_div_fixup_{kind} {to}, {to}, {b}, {a}",
    ]
    return "\n".join(steps)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_quotients_are_rounded_once(kind: str) -> None:
    v, s = random_image(WAVES, 1)
    a, b = pairs(kind)
    put(v, 2, kind, a)
    put(v, 4, kind, b)
    (outcome,) = harness.run([Case(divide(kind), v, s)])
    x, y = typed(a, kind), typed(b, kind)
    with np.errstate(all="ignore"):
        want = x / y
    got = typed(loaded(outcome.v, 0, kind), kind)
    wrong = np.flatnonzero((raw(got, kind) != raw(want, kind)) & ~(np.isnan(got) & np.isnan(want)))
    assert not len(wrong), [(x[n], y[n], got[n], want[n]) for n in wrong[:8]] + [len(wrong)]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_quotients_that_lose_few_digits_are_rounded_once(kind: str) -> None:
    """Denormal quotients close to the least normal number: half of those that lose one digit lie between two numbers
    when they are rounded to all digits first."""
    v, s = random_image(WAVES, 3)
    random, count = np.random.default_rng(4), WAVES * LANES
    dtype, least = DTYPE[kind], np.finfo(DTYPE[kind]).minexp
    a = np.ldexp(random.uniform(1, 2, count).astype(dtype), least + random.integers(0, 3, count)).astype(dtype)
    b = np.ldexp(random.uniform(1, 2, count).astype(dtype), random.integers(0, 6, count)).astype(dtype)
    put(v, 2, kind, raw(a, kind))
    put(v, 4, kind, raw(b, kind))
    (outcome,) = harness.run([Case(divide(kind), v, s)])
    want, got = a / b, typed(loaded(outcome.v, 0, kind), kind)
    assert (want < np.finfo(dtype).tiny).mean() > 0.5
    wrong = np.flatnonzero(raw(got, kind) != raw(want, kind))
    assert not len(wrong), [(a[n], b[n], got[n], want[n]) for n in wrong[:8]] + [len(wrong)]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_quotients_half_way_between_denormal_numbers_are_rounded_to_even(kind: str) -> None:
    v, s = random_image(WAVES, 3)
    random, count = np.random.default_rng(4), WAVES * LANES
    dtype = DTYPE[kind]
    b = (2 * random.integers(1, 40, count)).astype(dtype)
    a = (b / 2 * (2 * random.integers(0, 5, count) + 1)).astype(dtype) * np.finfo(dtype).smallest_subnormal
    put(v, 2, kind, raw(a, kind))
    put(v, 4, kind, raw(b, kind))
    (outcome,) = harness.run([Case(divide(kind), v, s)])
    want, got = a / b, typed(loaded(outcome.v, 0, kind), kind)
    assert (want == 0).any() and (got == want).all()


def scaled(x: Array, d: Array, n: Array) -> tuple[Array, Array]:
    """What v_div_scale gives for x, and its flag. Where the document scales a denominator beyond the range (1/d and n/d
    denormal), the quotient is right only if it is scaled down. A quotient that underflows counts as denormal."""
    single = x.dtype == np.float32
    by, far, small = (64, 96, 23) if single else (128, 768, 53)
    bias, width = (127, 23) if single else (1023, 52)

    def exponent(y: Array) -> Array:
        return (np.ascontiguousarray(y).view(f"u{y.dtype.itemsize}") >> width & (2 * bias + 1)).astype(np.int64)

    def denormal(y: Array) -> Array:
        return (y != 0) & (np.abs(y) < np.finfo(y.dtype).tiny)

    with np.errstate(all="ignore"):
        zero, large = (n == 0) | (d == 0), exponent(n) - exponent(d) >= far
        reciprocal, quotient = denormal(1 / d), denormal(n / d) | (n / d == 0)
        up, down = np.ldexp(x, by), np.ldexp(x, -by)
    of_d, of_n = x == d, x == n
    flag = ~zero & (large | (~denormal(d) & quotient))
    rules = [zero, large, denormal(d), reciprocal & quotient, reciprocal, quotient, exponent(n) <= small]
    values = [np.nan, np.where(of_d, up, x), up, np.where(of_d, down, x), down, np.where(of_n, up, x), up]
    return np.select(rules, values, x).astype(x.dtype), flag


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("which", [1, 2])
def test_scale(kind: str, which: int) -> None:
    v, s = random_image(WAVES, 1)
    a, b = pairs(kind)
    keep = ~(np.isnan(typed(a, kind)) | np.isnan(typed(b, kind)))
    a, b = np.where(keep, a, raw(np.ones(1, DTYPE[kind]), kind)), np.where(keep, b, raw(np.ones(1, DTYPE[kind]), kind))
    put(v, 2, kind, a)
    put(v, 4, kind, b)
    to, x, y, *_ = NAMES[kind]
    (outcome,) = harness.run([Case(f"v_div_scale_{kind} {to}, s[10:11], {(x, y)[which - 1]}, {y}, {x}", v, s)])
    numerator, denominator = typed(a, kind), typed(b, kind)
    want, flag = scaled((numerator, denominator)[which - 1], denominator, numerator)
    got = typed(loaded(outcome.v, 0, kind), kind)
    assert ((got == want) | np.isnan(want)).all()
    assert (mask(outcome.s, 10).reshape(-1) == flag).all()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fused_step_is_scaled_where_vcc_is_set(kind: str) -> None:
    v, s = random_image(WAVES, 2)
    random = np.random.default_rng(5)
    values = [
        (random.standard_normal(WAVES * LANES) * 2.0 ** random.integers(-60, 60, WAVES * LANES)).astype(DTYPE[kind])
        for _ in range(3)
    ]
    for n, x in enumerate(values):
        put(v, 2 + 2 * n, kind, raw(x, kind))
    to, a, b, c, *_ = NAMES[kind]
    (outcome,) = harness.run([Case(f"v_div_fmas_{kind} {to}, {a}, {b}, {c}", v, s)])
    plain, by = float_rows.fma(*values), 64 if kind == "f32" else 128
    direction = np.where(np.abs(values[2]) >= 2, by, -by)
    with np.errstate(all="ignore"):
        want = np.where(mask(s, 16).reshape(-1), np.ldexp(plain, direction), plain)
    assert (typed(loaded(outcome.v, 0, kind), kind) == want).all()


@pytest.mark.parametrize("name", ["v_div_fixup_f32", "v_div_fixup_f64", *PARTS])
def test_fixup(name: str) -> None:
    kind = name[-3:]
    v, s = random_image(WAVES, 2)
    a, b = pairs(kind)
    with np.errstate(all="ignore"):
        near = raw(typed(a, kind) / typed(b, kind), kind)
    for n, x in enumerate((near, b, a)):
        put(v, 2 + 2 * n, kind, x)
    names = [f"v{n}" if kind != "f64" else f"v[{n}:{n + 1}]" for n in (0, 2, 4, 6)]
    (outcome,) = harness.run([Case(f"{name} {', '.join(names)}", v, s)])
    x, y = typed(a, kind), typed(b, kind)
    got, want = typed(loaded(outcome.v, 0, kind), kind), typed(near, kind)
    special = np.isnan(x) | np.isnan(y) | np.isinf(x) | np.isinf(y) | (x == 0) | (y == 0)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()
    assert (np.signbit(got) == np.signbit(want))[special & ~np.isnan(want)].all()
    if kind == "f16":
        assert (outcome.v[:, 0] >> 16 == (0 if "legacy" in name else v[:, 0] >> 16)).all()
