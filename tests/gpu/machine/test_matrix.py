"""Matrix instructions: the layouts of their operands against AMD's published tables, and their values against numpy."""

import functools
import hashlib
import re
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
import torch

from kernel_scientist.gpu.machine.launch import Options
from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, LANES, Array, Case, random_image, set_mask
from tests.gpu.machine.published_layouts import DIGESTS

BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
WIDER = ("16x16x32_f16", "16x16x32_bf16", "32x32x16_f16", "32x32x16_bf16", "16x16x64_i8", "32x32x32_i8")
"""Shapes that gfx950 adds; consecutive values of k lie in a lane as for the 8-bit types of CDNA3."""
NAMES = [*DIGESTS, *(f"v_mfma_{'i32' if 'i8' in x else 'f32'}_{x}" for x in WIDER)]
_NAME = re.compile(r"v_(s?)mfmac?_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+?)(?:_(\w+))?$")


@dataclass(frozen=True)
class Shape:
    """What a mnemonic says."""

    sparse: bool
    result: str
    m: int
    k: int
    blocks: int
    a: str
    b: str

    @property
    def per_lane(self) -> int:
        """How many values of k a lane holds for B."""
        return self.k * self.m * self.blocks // LANES


@functools.cache
def shape(name: str) -> Shape:
    found = _NAME.match(name)
    assert found is not None
    sparse, result, m, _, k, blocks, a, b = found.groups()
    return Shape(bool(sparse), result, int(m), int(k), int(blocks or 1), a, b or a)


def source_place(x: Shape, kind: str, block: int, row: int, k: int) -> tuple[int, int, int]:
    """Register, lane and first bit of an element of A or B (which are alike, with rows and columns exchanged)."""
    bits = BITS[kind]
    if x.result == "f64":
        return 0, 16 * k + 4 * block + row if x.m == 4 else 16 * k + row, 0
    group, e = (block, k) if x.blocks > 1 else divmod(k, x.per_lane)
    return e * bits // 32, x.m * group + row, e * bits % 32


def result_place(x: Shape, block: int, i: int, j: int) -> tuple[int, int]:
    """First register and lane of an element of C or D."""
    if x.result == "f64":
        return (2 * (i // 4), 16 * (i % 4) + j) if x.m == 16 else (0, 16 * i + 4 * block + j)
    if x.m == 4:
        return i, 4 * block + j
    if x.m == 16:
        return 4 * block + i % 4, 16 * (i // 4) + j
    return 16 * block + 4 * (i // 8) + i % 4, 32 * (i // 4) % 64 + j


def index_place(x: Shape, i: int, k: int) -> tuple[int, int, int]:
    """Register, lane and first bit of the four bits that say which two of four values of k are there."""
    return 0, x.m * (k // x.per_lane) + i, 4 * (k % x.per_lane // 4)


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


def encoded(x: Array, kind: str) -> Array:
    """Small whole numbers as bits of a type."""
    if kind == "i8":
        return x.astype(np.int8).view(np.uint8).astype(np.uint64)
    if kind in ("f16", "f32", "f64", "xf32"):
        dtype = {"f16": np.float16, "f64": np.float64}.get(kind, np.float32)
        return x.astype(dtype).view(f"u{np.dtype(dtype).itemsize}").astype(np.uint64)
    if kind == "bf16":
        return x.astype(np.float32).view(np.uint32).astype(np.uint64) >> np.uint64(16)
    codes = torch.from_numpy(x.astype(np.float32)).to(
        {"fp8": torch.float8_e4m3fnuz, "bf8": torch.float8_e5m2fnuz}[kind]
    )
    return codes.view(torch.uint8).numpy().astype(np.uint64)


@dataclass
class Problem:
    """Operands of one wave as matrices and as registers, and what must come out."""

    registers: dict[str, Array]
    want: Array
    """Registers of D."""


def problem(name: str, seed: int, cbsz: int = 0, abid: int = 0, blgp: int = 0) -> Problem:
    x = shape(name)
    random = np.random.default_rng(seed)
    most = 2 if "8" in x.a + x.b else 8
    a = random.integers(-most, most + 1, (x.blocks, x.m, x.k)).astype(np.float64)
    b = random.integers(-most, most + 1, (x.blocks, x.k, x.m)).astype(np.float64)
    c = random.integers(-99, 100, (x.blocks, x.m, x.m)).astype(np.float64)
    part = 2 if x.sparse else 1
    count = max(x.per_lane * BITS[x.b] // 32, 1) if x.result != "f64" else 2
    words = {"a": np.zeros((max(count // part, 1), LANES), np.uint32), "b": np.zeros((count, LANES), np.uint32)}
    words["index"] = random.integers(0, 1 << 32, (1, LANES), np.uint32)
    if x.sparse:
        a = _sparse(x, a, random, words, abid if not cbsz else 0)
    for n, i, k in np.ndindex(*a.shape):
        if not x.sparse:
            _put(words["a"], source_place(x, x.a, n, i, k), encoded(a[n, i, k : k + 1], x.a)[0], BITS[x.a])
        _put(words["b"], source_place(x, x.b, n, i, k), encoded(b[n, k, i : i + 1], x.b)[0], BITS[x.b])
    if blgp and x.result != "f64":
        lanes = np.arange(LANES)
        origin = [lanes, lanes % 32, 32 + lanes % 32, (lanes + 16) % 64, *(lanes % 16 + 16 * n for n in range(4))][blgp]
        moved = words["b"][:, origin]
        b = np.array(
            [
                [[_get(moved, source_place(x, x.b, n, j, k), x.b) for j in range(x.m)] for k in range(x.k)]
                for n in range(x.blocks)
            ]
        )
    if x.result == "f64":  # BLGP has the signs
        a, b, c_used = (y * (-1) ** (blgp >> n & 1) for n, y in enumerate((a, b, c)))
    else:
        c_used = c
        a = a[[n >> cbsz << cbsz | abid for n in range(x.blocks)]] if not x.sparse and cbsz else a
    result = c_used + a @ b
    words["c"], want = _result(x, c), _result(x, result)
    return Problem(words, want)


def _sparse(x: Shape, a: Array, random: np.random.Generator, words: dict[str, Array], abid: int) -> Array:
    """Two of four values of A, packed; the others zero. The indices are put where ABID points to."""
    whole = np.zeros_like(a)
    for i in range(x.m):
        for first in range(0, x.k, 4):
            chosen = np.sort(random.permutation(4)[:2])
            _, lane, bit = index_place(x, i, first)
            bit = (bit + abid * x.per_lane) % 32
            words["index"][0, lane] &= np.uint32(0xFFFFFFFF ^ 15 << bit)
            words["index"][0, lane] |= np.uint32((chosen[0] | chosen[1] << 2) << bit)
            for n, place in enumerate(chosen):
                whole[0, i, first + place] = a[0, i, first + place]
                e = first % x.per_lane // 2 + n
                bits = BITS[x.a]
                _put(
                    words["a"],
                    (e * bits // 32, lane, e * bits % 32),
                    encoded(a[0, i, first + place][None], x.a)[0],
                    bits,
                )
    return whole


def _put(words: Array, place: tuple[int, int, int], value: int, bits: int) -> None:
    register, lane, bit = place
    if bits == 64:
        words[0, lane], words[1, lane] = int(value) & 0xFFFFFFFF, int(value) >> 32
    else:
        words[register, lane] |= np.uint32(int(value) << bit)


def _get(words: Array, place: tuple[int, int, int], kind: str) -> float:
    register, lane, bit = place
    value = int(words[register, lane]) >> bit & ((1 << BITS[kind]) - 1)
    if kind == "i8":
        return float(value - 256 if value > 127 else value)
    if kind == "bf16":
        return float(np.array([value << 16], np.uint32).view(np.float32)[0])
    return float(
        np.array([value], np.uint16 if kind == "f16" else np.uint32).view(np.float16 if kind == "f16" else np.float32)[
            0
        ]
    )


def _result(x: Shape, c: Array) -> Array:
    wide = x.result == "f64"
    count = x.m * x.m * x.blocks // LANES * (2 if wide else 1)
    words = np.zeros((count, LANES), np.uint32)
    for n, i, j in np.ndindex(*c.shape):
        register, lane = result_place(x, n, i, j)
        if wide:
            bits = int(np.float64(c[n, i, j]).view(np.uint64))
            words[register, lane], words[register + 1, lane] = bits & 0xFFFFFFFF, bits >> 32
        elif x.result == "i32":
            words[register, lane] = np.int32(c[n, i, j]).view(np.uint32)
        else:
            words[register, lane] = np.float32(c[n, i, j]).view(np.uint32)
    return words


def registers(file: str, first: int, count: int) -> str:
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


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
    places = {"a": 16, "b": 24, "index": 32, "c": 64}
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
    c = registers(file, 64, count)
    a, b = (registers("v", places[p], len(found.registers[p])) for p in ("a", "b"))
    to = c if x.sparse or random.random() < 0.5 else registers(file, 96, count)
    instruction = f"{name} {to}, {a}, {b}, {'v32' if x.sparse else c}{modifiers}"
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


@functools.cache
def runs() -> list[Run]:
    found = [run_of(name, seed) for name in NAMES for seed in range(2)]
    for name in DIGESTS:
        if not shape(name).sparse and shape(name).a not in ("fp8", "bf8"):
            one = run_of(name, 8)
            one.case.text, one.text = (text.replace(name, older(name)) for text in (one.case.text, one.text))
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
            [[_get(v[0, r : r + 2], source_place(x, "f16", 0, i, k), "f16") for k in range(16)] for i in range(16)]
        )
        for r in (2, 4)
    )
    (outcome,) = harness.run([Case(f"{name} v[8:11], v[2:3], v[4:5], 1.0", v, s)])
    exact, size = 1 + a @ b.T, 1 + np.abs(a) @ np.abs(b).T
    for i, j in np.ndindex(16, 16):
        register, lane = result_place(x, 0, i, j)
        assert abs(float(outcome.v[0, 8 + register, lane].view(np.float32)) - exact[i, j]) <= 16 * 2**-24 * size[i, j]
