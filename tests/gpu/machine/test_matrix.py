"""Matrix instructions: the layouts of their operands against AMD's published tables, and their values against numpy."""

import hashlib
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from kernel_scientist.gpu.machine.dispatch import Options
from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, LANES, Array, Case, random_image, set_mask
from tests.gpu.machine.matrices import BITS, element, index_place, problem, result_place, shape, source_place
from tests.gpu.machine.published_layouts import DIGESTS
from tests.gpu.machine.test_lds import registers

WIDER = (
    *("v_mfma_f32_16x16x32_f16", "v_mfma_f32_16x16x32_bf16", "v_mfma_f32_32x32x16_f16", "v_mfma_f32_32x32x16_bf16"),
    *("v_mfma_i32_16x16x64_i8", "v_mfma_i32_32x32x32_i8", "v_smfmac_f32_16x16x64_f16", "v_smfmac_f32_16x16x64_bf16"),
    *(
        "v_smfmac_f32_32x32x32_f16",
        "v_smfmac_f32_32x32x32_bf16",
        "v_smfmac_i32_16x16x128_i8",
        "v_smfmac_i32_32x32x64_i8",
    ),
)
"""Shapes that gfx950 adds; consecutive values of k lie in a lane as for the 8-bit types of CDNA3."""
NAMES = [*DIGESTS, *WIDER]


def digest(places: list[tuple[int, ...]]) -> str:
    return hashlib.sha256(" ".join(",".join(map(str, p)) for p in places).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", DIGESTS)
def test_layouts_are_the_published_ones(name: str) -> None:
    x = shape(name)
    blocks, m, k = range(x.blocks), range(x.m), range(x.k)
    a = [index_place(x, i, p) if x.sparse else source_place(x, x.a, n, i, p) for n in blocks for i in m for p in k]
    b = [source_place(x, x.b, n, j, p) for n in blocks for p in k for j in m]
    d = [(*result_place(x, n, i, j), 0) for n in blocks for i in m for j in m]
    published = DIGESTS[name]
    assert (digest(a), digest(b), digest(d)) == published


@dataclass
class Run:
    """A case of a matrix instruction."""

    text: str
    case: Case
    want: Array
    start: int
    """Where in the case's memory its result is."""


def run_of(name: str, seed: int, modifiers: str = "", cbsz: int = 0, abid: int = 0, blgp: int = 0) -> Run:
    """A, B, the indices and C lie in memory one after another; D is stored behind them."""
    random = Random(f"{name}{seed}{modifiers}")
    x, found = shape(name), problem(name, seed, cbsz, abid, blgp)
    file = random.choice("va") if not x.sparse else "v"
    places = {"a": 16, "b": 24, "index": 34, "c": 64}
    load, offset = ["s_mov_b64 s[92:93], s[88:89]"], 0
    memory = []
    for part, first in places.items():
        for n, words in enumerate(found.registers[part]):
            load.append(f"global_load_dword v{first + n}, v255, s[92:93]")
            load += ["s_add_u32 s92, s92, 0x100", "s_addc_u32 s93, s93, 0"]
            memory.append(words)
            offset += 256
    count = len(found.want)
    load += [f"v_accvgpr_write_b32 a{64 + n}, v{64 + n}" for n in range(count)] if file == "a" else []
    c = registers(64, 4 * count, file)
    a, b = (registers(places[p], 4 * len(found.registers[p])) for p in ("a", "b"))
    to = c if x.sparse or random.random() < 0.5 else registers(96, 4 * count, file)
    instruction = f"{name} {to}, {a}, {b}, {'v34' if x.sparse else c}{modifiers}"
    first = int(to.strip("va[").split(":")[0])
    take = [f"v_accvgpr_read_b32 v{first + n}, a{first + n}" for n in range(count)] if file == "a" else []
    store = ["s_mov_b64 exec, -1", *take]
    for n in range(count):
        store.append(f"global_store_dword v255, v{first + n}, s[92:93]")
        store += ["s_add_u32 s92, s92, 0x100", "s_addc_u32 s93, s93, 0"]
    v, s = random_image(1, seed)
    content = np.concatenate([np.stack(memory), np.zeros((count, LANES), np.uint32)]).view(np.uint8).reshape(1, -1)
    set_mask(s, EXEC, np.random.default_rng(seed).random((1, LANES)) < 0.5)  # the instruction ignores it
    text = "\n".join(
        ["s_mov_b64 s[94:95], exec", "s_mov_b64 exec, -1", *load, "s_mov_b64 exec, s[94:95]", instruction, *store]
    )
    return Run(instruction, Case(text, v, s, content.copy()), found.want, offset)


def older(name: str) -> str:
    """The name that the assembler took before CDNA3."""
    x = shape(name)
    return f"v_mfma_{x.result}_{x.m}x{x.m}x{x.k}{x.a}{'_1k' if x.a == 'bf16' else ''}"


OLDER = {older(name): name for name in DIGESTS if not shape(name).sparse and shape(name).a not in ("fp8", "bf8")}


def runs() -> list[Run]:
    found = [run_of(name, seed) for name in NAMES for seed in range(2)]
    for old, name in OLDER.items():
        one = run_of(name, 8)
        one.case.text, one.text = (text.replace(name, old) for text in (one.case.text, one.text))
        found.append(one)
    for name in NAMES:
        x = shape(name)
        if x.blocks > 1 and x.result != "f64":
            size = x.blocks.bit_length() - 1
            for cbsz, abid in {(1, 0), (1, 1), (size, x.blocks - 1), (size, 0)}:
                found.append(run_of(name, 3, f" cbsz:{cbsz}" + (f" abid:{abid}" if abid else ""), cbsz, abid))
        if not x.sparse and BITS[x.a] >= 16 and x.a != "xf32" and x.result == "f32" and name in DIGESTS:
            found += [run_of(name, 4, f" blgp:{n}", blgp=n) for n in (range(1, 8) if x.m != 4 else (1, 3, 6))]
        if x.result == "f64":
            found += [run_of(name, 5, f" neg:[{n & 1},{n >> 1 & 1},{n >> 2}]", blgp=n) for n in range(1, 8)]
        if x.sparse:
            found += [run_of(name, 6, f" abid:{n}", abid=n) for n in range(1, 32 // x.per_lane)]
            found.append(run_of(name, 7, " cbsz:1 abid:1", cbsz=1, abid=1))
    return found


def test_values_in_their_places() -> None:
    """Small whole numbers: every sum is exact, in any order."""
    wrong = []
    chosen = runs()
    for start in range(0, len(chosen), 100):
        batch = chosen[start : start + 100]
        for options in (Options(), Options(descending_sums=True)):
            harness.run([one.case for one in batch], options=options)
            for one in batch:
                assert one.case.memory is not None
                got = np.ascontiguousarray(one.case.memory[0, one.start :]).view(np.uint32).reshape(-1, LANES)
                if (got != one.want).any():
                    wrong.append((one.text, np.argwhere(got != one.want)[:2].tolist(), int((got != one.want).sum())))
    assert not wrong, "\n".join(map(str, wrong[:40]))


def test_rounding_is_that_of_fp32_sums() -> None:
    """Products of random fp16 numbers: no further from the exact sum than fp32 sums in any order."""
    name, v, s = "v_mfma_f32_16x16x16_f16", *random_image(1, 1)
    x, random = shape(name), np.random.default_rng(2)
    numbers = random.standard_normal((4, LANES, 2)).astype(np.float16)
    v[0, 2:6] = numbers.view(np.uint32)[..., 0]
    a, b = (
        np.array(
            [[element(v[0, r : r + 2], source_place(x, "f16", 0, i, k), "f16") for k in range(16)] for i in range(16)]
        )
        for r in (2, 4)
    )
    (outcome,) = harness.run([Case(f"{name} v[8:11], v[2:3], v[4:5], 1.0", v, s)])
    exact, size = 1 + a @ b.T, 1 + np.abs(a) @ np.abs(b).T
    for i, j in np.ndindex(16, 16):
        register, lane = result_place(x, 0, i, j)
        assert abs(float(outcome.v[0, 8 + register, lane].view(np.float32)) - exact[i, j]) <= 16 * 2**-24 * size[i, j]


@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_16x16x16_f16", "v_mfma_i32_16x16x32_i8"])
def test_products_of_zeros_leave_the_addend(name: str) -> None:
    """Also one that is no number, infinite, tiny or -0, to which +0 is added; -0 in A is no +0."""
    x, addends = shape(name), np.array([0, 0x80000000, 0x7F800000, 0xFFC00001, 1, 0x3F800001], np.uint32)
    count = x.m * x.m // LANES
    for negative in (False, True):
        v, s = random_image(1, 3)
        c = np.random.default_rng(4).choice(addends, (count, LANES))
        v[0, 2:6], v[0, 8 : 8 + count] = 0, c
        if negative:
            v[0, 2] = 0x80808080 if x.a == "i8" else 0x80008000
        width = registers(2, 2 * 4, "v"), registers(4, 2 * 4, "v")
        to = registers(8, 4 * count, "v")
        (outcome,) = harness.run([Case(f"{name} {to}, {width[0]}, {width[1]}, {to}", v, s)])
        got = outcome.v[0, 8 : 8 + count]
        if x.result == "i32":
            assert (got == c).all()
            continue
        numbers = c.view(np.float32)
        is_number = ~np.isnan(numbers)
        if "fp8" in name and negative:  # 0x80 of fp8 is no number
            assert np.isnan(got.view(np.float32)).any()
        else:
            want = (numbers + np.float32(0)).view(np.uint32)
            assert (got[is_number] == want[is_number]).all() and np.isnan(got.view(np.float32)[~is_number]).all()


@pytest.mark.parametrize("value", [0, 0x3C003C00])
def test_the_addend_is_read_before_the_result_is_written(value: int) -> None:
    x = shape("v_mfma_f32_16x16x16_f16")
    count = x.m * x.m // LANES
    v, s = random_image(1, 5)
    v[0, 2:6], v[0, 7 : 7 + count + 1] = value, np.arange(1, count + 2, dtype=np.float32).view(np.uint32)[:, None]
    a, b = registers(2, 2 * 4, "v"), registers(4, 2 * 4, "v")
    to, addend = registers(8, 4 * count, "v"), registers(7, 4 * count, "v")
    (outcome,) = harness.run([Case(f"v_mfma_f32_16x16x16_f16 {to}, {a}, {b}, {addend}", v, s)])
    got = outcome.v[0, 8 : 8 + count].view(np.float32)
    assert (got == np.arange(1, count + 1)[:, None] + (16 if value else 0)).all()


def test_a_sparse_product_leaves_out_what_is_not_chosen() -> None:
    """Of each four numbers of B the first two are: 16 products of 1, although the third is infinite."""
    v, s = harness.random_image(1, 3)
    v[:, 0:4] = 0
    v[:, 4:6] = v[:, 6:10] = 0x3C003C00
    v[:, 7] = v[:, 9] = 0x3C007C00
    v[:, 10] = 0x44444444
    (outcome,) = harness.run([Case("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", v, s)])
    assert (outcome.v[:, 0:4] == np.float32(16).view(np.uint32)).all()
