"""Sums with carries, selections by a mask, wide products: instructions with masks of lanes as operands."""

from random import Random

import numpy as np
import pytest

from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, LANES, VCC, Array, Case, active, mask, random_image, set_mask
from tests.gpu.machine.values import tuples
from tests.gpu.machine.vectors import SELECTIONS, WAVES, part_of, put

SIGNS = {
    "v_add_co_u32": (1, 1, False), "v_sub_co_u32": (1, -1, False), "v_subrev_co_u32": (-1, 1, False),
    "v_addc_co_u32": (1, 1, True), "v_subb_co_u32": (1, -1, True), "v_subbrev_co_u32": (-1, 1, True),
}  # fmt: skip
"""Signs of the two sources, and whether a carry comes in with the sign of the second of them, or minus."""
Wanted = tuple[Case, Array, Array]


def image(kinds: tuple[str, ...], random: Random) -> tuple[Array, Array, list[Array]]:
    v, s = random_image(WAVES, random.randrange(1 << 30))
    values = tuples(kinds, WAVES * LANES, random.randrange(1 << 30))
    for place, kind in enumerate(kinds):
        put(v, 2 + 2 * place, kind, values[place])
    lanes = np.random.default_rng(random.randrange(1 << 30)).random((WAVES, LANES)) < random.choice((0.5, 1.0))
    set_mask(s, EXEC, lanes)
    return v, s, [x.reshape(WAVES, LANES) for x in values]


def carried(name: str, encoding: str, seed: int) -> Wanted:
    random = Random(f"{name}{encoding}{seed}")
    first, second, chained = SIGNS[name]
    v, s, (a, b) = image(("u32", "u32"), random)
    out, carry_in = ("vcc", "vcc") if encoding != "_e64" else ("s[10:11]", "s[12:13]")
    tail, clamp = "", encoding == "_e64" and random.random() < 0.5
    if encoding == "_sdwa":
        chosen = [random.choice(SELECTIONS) for _ in range(2)]
        a, b = (part_of(x, c, False) for x, c in zip((a, b), chosen, strict=True))
        tail = f" dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{chosen[0]} src1_sel:{chosen[1]}"
    if encoding == "_dpp":
        tail = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        set_mask(s, EXEC, np.ones((WAVES, LANES), bool))
        a = a[:, np.arange(LANES) ^ 1]
    into = mask(s, VCC if carry_in == "vcc" else 12).astype(np.int64) if chained else np.int64(0)
    minus = first < 0 or second < 0
    exact = first * a.astype(np.int64) + second * b.astype(np.int64) + (-into if minus else into)
    enabled = active(s)
    overflow = ((exact < 0) | (exact >> 32 > 0)) & enabled
    want_v, want_s = v.copy(), s.copy()
    limited = np.clip(exact, 0, (1 << 32) - 1) if clamp else exact & 0xFFFFFFFF
    want_v[:, 0] = np.where(enabled, limited.astype(np.uint32), v[:, 0])
    set_mask(want_s, VCC if out == "vcc" else 10, overflow)
    text = f"{name}{encoding} v0, {out}, v2, v4" + (f", {carry_in}" if chained else "")
    return Case(text + (" clamp" if clamp else "") + tail, v, s), want_v, want_s


def chosen_by_mask(encoding: str, seed: int) -> Wanted:
    random = Random(f"cndmask{encoding}{seed}")
    v, s, (a, b) = image(("u32", "u32"), random)
    by, sources, tail = "vcc", ["v2", "v4"], ""
    if encoding == "_e64":
        by = random.choice(("vcc", "s[12:13]"))
        if random.random() < 0.5:
            sources, a, b = ["-v2", "|v4|"], a ^ np.uint64(0x80000000), b & np.uint64(0x7FFFFFFF)
        elif random.random() < 0.5:
            sources[1], b = "-1", np.full_like(b, 0xFFFFFFFF)
    elif encoding == "_sdwa":
        chosen = [random.choice(SELECTIONS) for _ in range(2)]
        a, b = (part_of(x, c, False) for x, c in zip((a, b), chosen, strict=True))
        tail = f" dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{chosen[0]} src1_sel:{chosen[1]}"
    elif encoding == "_dpp":
        tail, a = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", a[:, np.arange(LANES) ^ 1]
        set_mask(s, EXEC, np.ones((WAVES, LANES), bool))
    want = v.copy()
    taken = np.where(mask(s, VCC if by == "vcc" else 12), b, a).astype(np.uint32)
    want[:, 0] = np.where(active(s), taken, v[:, 0])
    return Case(f"v_cndmask_b32{encoding} v0, {', '.join(sources)}, {by}{tail}", v, s), want, s


def product(name: str, kinds: tuple[str, ...], seed: int) -> Wanted:
    random = Random(f"{name}{seed}")
    v, s, values = image(kinds, random)
    signed = kinds[0] == "i32"

    def number(x: int, bits: int) -> int:
        return x - (1 << bits) if signed and x >> (bits - 1) else x

    want_v, want_s, flags = v.copy(), s.copy(), np.zeros((WAVES, LANES), bool)
    enabled = active(s)
    for place in np.ndindex(WAVES, LANES):
        a, b, c = (int(x[place]) for x in values)
        exact = number(a, 32) * number(b, 32) + number(c, 64)
        flags[place] = not (-(1 << 63) <= exact < 1 << 63) if signed else exact >> 64
        if enabled[place]:
            want_v[place[0], 0, place[1]] = exact & 0xFFFFFFFF
            want_v[place[0], 1, place[1]] = exact >> 32 & 0xFFFFFFFF
    set_mask(want_s, 10, flags & enabled)
    return Case(f"{name} v[0:1], s[10:11], v2, v4, v[6:7]", v, s), want_v, want_s


def cases() -> list[Wanted]:
    encodings = ("_e32", "_e64", "_sdwa", "_dpp")
    found = [carried(name, e, seed) for name in SIGNS for e in encodings for seed in range(3)]
    found += [chosen_by_mask(e, seed) for e in encodings for seed in range(5)]
    found += [product("v_mad_u64_u32", ("u32", "u32", "u64"), seed) for seed in range(2)]
    found += [product("v_mad_i64_i32", ("i32", "i32", "i64"), seed) for seed in range(2)]
    return found


@pytest.mark.parametrize("part", range(2))
def test_masks(part: int) -> None:
    chosen = cases()[part::2]
    wrong = []
    for (one, want_v, want_s), outcome in zip(chosen, harness.run([c for c, _, _ in chosen]), strict=True):
        if (outcome.v != want_v).any() or (outcome.s != want_s).any():
            wrong.append(
                (one.text, np.argwhere(outcome.v != want_v)[:1].tolist(), np.argwhere(outcome.s != want_s)[:1].tolist())
            )
    assert not wrong, "\n".join(map(str, wrong[:40]))
