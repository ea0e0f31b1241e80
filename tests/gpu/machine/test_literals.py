"""Instructions with a literal in a place of its own, and constants as each type of operand reads them."""

import numpy as np

from tests.gpu.machine import float_rows, harness
from tests.gpu.machine.harness import LANES, Array, Case, random_image
from tests.gpu.machine.values import tuples, typed
from tests.gpu.machine.vectors import WAVES, loaded, put

K32, K16 = 0x3F9D70A4, 0x3555
TEXTS = {
    f"v_fmaak_f32 v0, v2, v4, {hex(K32)}": ("f32", lambda a, b, k: float_rows.fma(a, b, k)),
    f"v_fmamk_f32 v0, v2, {hex(K32)}, v4": ("f32", lambda a, b, k: float_rows.fma(a, k, b)),
    f"v_madak_f16 v0, v2, v4, {hex(K16)}": ("f16", lambda a, b, k: a * b + k),
    f"v_madmk_f16 v0, v2, {hex(K16)}, v4": ("f16", lambda a, b, k: a * k + b),
}
CONSTANTS = {
    "v_mov_b32_e32 v0, 1.0": 0x3F800000, "v_mov_b32_e32 v0, -16": 0xFFFFFFF0,
    "v_mov_b32_e32 v0, 0.15915494": 0x3E22F983,
    "v_mov_b32_e32 v0, 0xdeadbeef": 0xDEADBEEF, "v_add_f16_e64 v0, 1.0, 0": 0x3C00,
    "v_lshlrev_b16_e64 v0, 0, -1": 0xFFFF, "v_add_f64 v[0:1], 1.0, 0": 0x3FF0000000000000,
    "v_lshlrev_b64 v[0:1], 0, -1": 0xFFFFFFFFFFFFFFFF, "v_lshlrev_b64 v[0:1], 0, 64": 64,
    "v_add_f64 v[0:1], 0, 1": 1, "v_mov_b64_e32 v[0:1], -4.0": 0xC010000000000000, "v_mov_b64_e32 v[0:1], 7": 7,
    "v_add_f64 v[0:1], 0, 0.15915494309189532": 0x3FC45F306DC9C882,
    "v_pk_add_f16 v0, 1.0, 0 op_sel_hi:[0,0]": 0x3C003C00,
    "v_pk_add_u16 v0, 3, 0 op_sel_hi:[0,0]": 0x00030003, "v_pk_add_u16 v0, -1, 0": 0xFFFFFFFF,
    "v_pk_add_f16 v0, 1.0, 0": 0x00003C00, "v_pk_mul_f32 v[0:1], 2.0, 1.0 op_sel_hi:[0,0]": 0x4000000040000000,
}  # fmt: skip
"""Text and the bits of the result, if it depends on constants alone."""


def image(kind: str) -> tuple[Array, Array, list[Array]]:
    v, s = random_image(WAVES, 3)
    values = tuples((kind, kind), WAVES * LANES, 4)
    for n, x in enumerate(values):
        put(v, 2 + 2 * n, kind, x)
    return v, s, [typed(x, kind) for x in values]


def test_literals_as_factors_and_addends() -> None:
    for text, (kind, rule) in TEXTS.items():
        v, s, (a, b) = image(kind)
        k = np.full_like(
            a,
            np.array([K32], np.uint32).view(np.float32)[0]
            if kind == "f32"
            else np.array([K16], np.uint16).view(np.float16)[0],
        )
        (outcome,) = harness.run([Case(text, v, s)])
        with np.errstate(all="ignore"):
            want = rule(a, b, k)
        got = typed(loaded(outcome.v, 0, kind), kind)
        assert ((got == want) | (np.isnan(got) & np.isnan(want))).all(), text


def test_constants_by_the_type_of_their_operand() -> None:
    v, s = random_image(1, 3)
    outcomes = harness.run([Case(text, v, s) for text in CONSTANTS])
    for (text, want), outcome in zip(CONSTANTS.items(), outcomes, strict=True):
        wide = "v[0:1]" in text
        got = int(outcome.v[0, 0, 5]) | (int(outcome.v[0, 1, 5]) << 32 if wide else 0)
        assert hex(got) == hex(want), text


def test_constants_of_products_of_bytes_are_words() -> None:
    v, s = random_image(1, 3)
    (outcome,) = harness.run([Case("v_dot4c_i32_i8_e32 v0, 2.0, v2", v, s)])
    high = loaded(v, 2, "u32").view(np.int32) >> 24  # 2.0 is 0x40000000, so 64 is the only factor
    assert (loaded(outcome.v, 0, "u32").view(np.int32) == loaded(v, 0, "u32").view(np.int32) + 64 * high).all()
