"""Conversions from and to the 8-bit formats of CDNA3 (FNUZ), against torch's types."""

import numpy as np
import pytest
import torch

from tests.gpu.machine import harness
from tests.gpu.machine.harness import LANES, Array, Case, random_image
from tests.gpu.machine.values import corners

TYPES = {"fp8": torch.float8_e4m3fnuz, "bf8": torch.float8_e5m2fnuz}
WAVES = 16
SATURATE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n"
CASES = (
    *("v_cvt_f32_{t}_e32 v0, v2", "v_cvt_f32_{t}_sdwa v0, v2 src0_sel:BYTE_2"),
    "v_cvt_pk_f32_{t}_e32 v[0:1], v2",
    "v_cvt_pk_f32_{t}_sdwa v[0:1], v2 src0_sel:WORD_1",
)
NARROW = ("v_cvt_pk_{t}_f32 v0, v2, v3", "v_cvt_pk_{t}_f32 v0, -v2, |v3| op_sel:[0,0,1]")
STOCHASTIC = tuple(
    "v_cvt_sr_{t}_f32 v0, v2, v3" + x for x in ("", " op_sel:[0,0,1,0]", " op_sel:[0,0,0,1]", " op_sel:[0,0,1,1]")
)


def cases() -> list[str]:
    """Texts of everything that is run here."""
    return [text.format(t=t) for t in TYPES for text in (*CASES, *NARROW, *STOCHASTIC)]


def numbers(seed: int) -> Array:
    """fp32 numbers: corners, and the range of the formats with their halfway points."""
    random = np.random.default_rng(seed)
    count = WAVES * LANES
    found = (random.standard_normal(count) * 2.0 ** random.integers(-20, 18, count)).astype(np.float32)
    found[::3] = np.round(found[::3] * 1024) / 1024
    halfway = (random.integers(1, 64, count) * 2.0 ** random.integers(-20, 12, count)).astype(np.float32)
    found[1::3] = halfway[1::3]
    bits = corners("f32").astype(np.uint32)
    found[: len(bits)] = bits.view(np.float32)
    edges = np.array([240, 247.9, 248, 248.1, 256, 57344, 61439, 61440, 61441, 65536, 1e5], np.float32)
    found[100 : 100 + len(edges)], found[120 : 120 + len(edges)] = edges, -edges
    return found


def by_torch(x: Array, kind: str) -> Array:
    return torch.from_numpy(np.ascontiguousarray(x)).to(TYPES[kind]).view(torch.uint8).numpy()


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_all_codes_widen(kind: str) -> None:
    v, s = random_image(WAVES, 1)
    want = torch.arange(256, dtype=torch.uint8).view(TYPES[kind]).float().numpy()
    outcomes = harness.run([Case(text.format(t=kind), v, s) for text in CASES])
    for outcome, first, count in zip(outcomes, (0, 16, 0, 16), (1, 1, 2, 2), strict=True):
        for n in range(count):
            codes = v[:, 2] >> np.uint32(first + 8 * n) & np.uint32(255)
            np.testing.assert_array_equal(outcome.v[:, n].view(np.float32), want[codes])


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("saturate", [False, True])
def test_pairs_are_rounded_to_nearest_even(kind: str, saturate: bool) -> None:
    v, s = random_image(WAVES, 2)
    a, b = numbers(1).reshape(WAVES, LANES), numbers(2).reshape(WAVES, LANES)
    v[:, 2], v[:, 3] = a.view(np.uint32), b.view(np.uint32)
    outcomes = harness.run([Case((SATURATE if saturate else "") + text.format(t=kind), v, s) for text in NARROW])
    most = {"fp8": 240, "bf8": 57344}[kind]
    for outcome, (x, y), shift in zip(outcomes, ((a, b), (-a, np.abs(b))), (0, 16), strict=True):
        if saturate:
            x, y = (np.where(np.isfinite(z), np.clip(z, -most, most), z) for z in (x, y))
        codes = by_torch(x, kind).astype(np.uint32) | by_torch(y, kind).astype(np.uint32) << 8
        want = v[:, 0] & np.uint32(0xFFFF0000 >> shift) | codes << np.uint32(shift)
        np.testing.assert_array_equal(outcome.v[:, 0], want)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_stochastic_rounding_chooses_a_neighbour(kind: str) -> None:
    v, s = random_image(WAVES, 3)
    least, most = {"fp8": (2.0**-7, 239), "bf8": (2.0**-15, 57000)}[kind]
    x = numbers(4).reshape(WAVES, LANES)
    x = np.where(np.isfinite(x) & (np.abs(x) >= least) & (np.abs(x) <= most), x, np.float32(1.3))
    v[:, 2] = x.view(np.uint32)
    mantissa = 3 if kind == "fp8" else 2
    step = np.exp2(np.floor(np.log2(np.abs(x.astype(np.float64)))) - mantissa)
    below = np.floor(np.abs(x) / step)
    share = np.abs(x) / step - below  # the number is rounded up if the random number reaches the rest of a step
    up = share + (v[:, 3] >> np.uint32(9 + mantissa)) / 2.0 ** (23 - mantissa) >= 1
    want = np.copysign((below + up) * step, x).astype(np.float32)
    outcomes = harness.run([Case(text.format(t=kind), v, s) for text in STOCHASTIC])
    for place, outcome in zip((0, 1, 2, 3), outcomes, strict=True):
        byte = np.uint32(255 << 8 * place)
        np.testing.assert_array_equal(outcome.v[:, 0] & ~byte, v[:, 0] & ~byte)
        np.testing.assert_array_equal(outcome.v[:, 0] >> np.uint32(8 * place) & np.uint32(255), by_torch(want, kind))
