"""Simple instructions that gfx950 adds, from the text of AMD's CDNA4 ISA document."""

import numpy as np
import torch

from tests.gpu.machine import harness
from tests.gpu.machine.float_rows import least, most
from tests.gpu.machine.harness import LANES, Array, Case, random_image
from tests.gpu.machine.values import tuples, typed
from tests.gpu.machine.vectors import WAVES, loaded, put

TABLES = (0x00, 0x1E, 0x6A, 0x96, 0xCA, 0xE8, 0xFF)
BITS_OF_THREE = tuple(f"v_bitop3_b32 v0, v2, v3, v4 bitop3:{hex(table)}" for table in TABLES)
BITS_OF_HALVES = tuple(
    f"v_bitop3_b16 v0, v2, v3, v4 bitop3:{hex(t)} op_sel:[1,0,1,{n & 1}]" for n, t in enumerate(TABLES)
)
SWAPS = ("v_permlane16_swap_b32_e32 v2, v3", "v_permlane32_swap_b32_e32 v2, v3")
SHIFTS = {f"v_ashr_pk_{t}_i32 v0, v2, v3, v4 op_sel:[0,0,0,{n}]": (t, n) for t in ("i8", "u8") for n in range(2)}
EXTREMES = {"v_minimum3_f32 v0, v2, -v3, |v4|": least, "v_maximum3_f32 v0, v2, -v3, |v4|": most}
DOTS = ("v_dot2_f32_bf16 v0, v2, v3, v4", "v_dot2c_f32_bf16 v0, v2, v3")
OTHERS = (
    *("v_prng_b32_e32 v0, v2", "v_cvt_f32_bf16_e32 v0, v2", "v_cvt_f32_bf16_sdwa v0, v2 src0_sel:WORD_1"),
    *("v_cvt_pk_f16_f32 v0, v2, v3", "v_cvt_pk_bf16_f32 v0, v2, v3"),
)
TEXTS = (*BITS_OF_THREE, *BITS_OF_HALVES, *SWAPS, *SHIFTS, *EXTREMES, *DOTS, *OTHERS)


def image(kind: str = "u32") -> tuple[Array, Array]:
    v, s = random_image(WAVES, 3)
    for n, x in enumerate(tuples((kind,) * 3, WAVES * LANES, 4)):
        put(v, 2 + n, kind, x)
    return v, s


def of_table(table: int, a: Array, b: Array, c: Array) -> Array:
    """Bit by bit: the table's bit that the three bits number."""
    found = np.zeros_like(a)
    for n in range(32):
        place = (a >> n & 1) * 4 + (b >> n & 1) * 2 + (c >> n & 1)
        found |= (np.uint32(table) >> place & 1) << n
    return found


def test_any_function_of_three_bits() -> None:
    v, s = image()
    for text, table, outcome in zip(
        BITS_OF_THREE, TABLES, harness.run([Case(t, v, s) for t in BITS_OF_THREE]), strict=True
    ):
        np.testing.assert_array_equal(outcome.v[:, 0], of_table(table, v[:, 2], v[:, 3], v[:, 4]), text)
    outcomes = harness.run([Case(t, v, s) for t in BITS_OF_HALVES])
    for n, (text, table, outcome) in enumerate(zip(BITS_OF_HALVES, TABLES, outcomes, strict=True)):
        result = of_table(table, v[:, 2] >> 16, v[:, 3] & 0xFFFF, v[:, 4] >> 16) & 0xFFFF
        if n & 1:
            np.testing.assert_array_equal(outcome.v[:, 0], result << 16 | v[:, 0] & 0xFFFF, text)
        else:
            np.testing.assert_array_equal(outcome.v[:, 0] & 0xFFFF, result, text)


def test_rows_are_exchanged() -> None:
    v, s = image()
    for text, row, outcome in zip(SWAPS, (16, 32), harness.run([Case(t, v, s) for t in SWAPS]), strict=True):
        to, source = v[:, 2].copy(), v[:, 3].copy()
        for lane in range(LANES):
            if not lane & row:
                source[:, lane], to[:, lane + row] = v[:, 2, lane + row], v[:, 3, lane]
        np.testing.assert_array_equal(outcome.v[:, 2], to, text)
        np.testing.assert_array_equal(outcome.v[:, 3], source, text)


def test_bytes_of_shifted_numbers() -> None:
    v, s = image()
    for (text, (kind, high)), outcome in zip(SHIFTS.items(), harness.run([Case(t, v, s) for t in SHIFTS]), strict=True):
        limits = np.iinfo({"i8": np.int8, "u8": np.uint8}[kind])
        low, top = (
            np.clip(v[:, n].view(np.int32) >> (v[:, 4] & 31).astype(np.int32), limits.min, limits.max) for n in (2, 3)
        )
        pair = (low & 255 | (top & 255) << 8).astype(np.uint32)
        want = pair << 16 | v[:, 0] & 0xFFFF if high else pair | v[:, 0] & 0xFFFF0000
        np.testing.assert_array_equal(outcome.v[:, 0], want, text)


def test_extremes_of_three_keep_nan() -> None:
    v, s = image("f32")
    a, b, c = (typed(loaded(v, n, "f32"), "f32") for n in (2, 3, 4))
    for (text, rule), outcome in zip(EXTREMES.items(), harness.run([Case(t, v, s) for t in EXTREMES]), strict=True):
        want = rule(rule(a, -b), np.abs(c))
        want = np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), np.float32(np.nan), want)
        np.testing.assert_array_equal(outcome.v[:, 0].reshape(-1).view(np.float32), want, text)


def test_dots_of_bf16() -> None:
    """Small whole numbers, whose sums are exact in any order."""
    v, s = image()
    random = np.random.default_rng(1)
    numbers = random.integers(-60, 60, (2, 2, WAVES, LANES)).astype(np.float32)
    for n in range(2):
        v[:, 2 + n] = numbers[n, 0].view(np.uint32) >> 16 | numbers[n, 1].view(np.uint32) & 0xFFFF0000
    for register in (0, 4):
        v[:, register] = random.integers(-999, 999, (WAVES, LANES)).astype(np.float32).view(np.uint32)
    total = (numbers[0] * numbers[1]).sum(0)
    three, onto = harness.run([Case(t, v, s) for t in DOTS])
    np.testing.assert_array_equal(three.v[:, 0].view(np.float32), total + v[:, 4].view(np.float32))
    np.testing.assert_array_equal(onto.v[:, 0].view(np.float32), total + v[:, 0].view(np.float32))


def test_conversions_and_random_numbers() -> None:
    v, s = image("f32")
    v[:, 2][np.isnan(v[:, 2].view(np.float32))] = 0x3F800000
    v[:, 3][np.isnan(v[:, 3].view(np.float32))] = 0x3F800000
    numbers = [np.ascontiguousarray(v[:, n]).view(np.float32) for n in (2, 3)]
    prng, low, high, pairs16, pairs = harness.run([Case(t, v, s) for t in OTHERS])
    word = v[:, 2].astype(np.uint64)
    np.testing.assert_array_equal(
        prng.v[:, 0], (word << np.uint64(1) ^ (word >> np.uint64(31)) * np.uint64(197)) & np.uint64(0xFFFFFFFF)
    )
    np.testing.assert_array_equal(low.v[:, 0], v[:, 2] << 16)
    np.testing.assert_array_equal(high.v[:, 0], v[:, 2] & 0xFFFF0000)
    with np.errstate(over="ignore"):
        halves = [x.astype(np.float16).view(np.uint16).astype(np.uint32) for x in numbers]
    np.testing.assert_array_equal(pairs16.v[:, 0], halves[0] | halves[1] << 16)
    halves = [
        torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16).astype(np.uint32) for x in numbers
    ]
    np.testing.assert_array_equal(pairs.v[:, 0], halves[0] | halves[1] << 16)
