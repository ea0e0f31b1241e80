"""Matrix instructions: where their elements lie, and problems of small whole numbers with their results.

Source: AMD, "AMD Matrix Instruction Calculator"; AMD, "AMD Instinct MI300 Instruction Set Architecture", chapter 7.
"""

import functools
import re
from dataclasses import dataclass

import numpy as np
import torch

from tests.gpu.machine.harness import LANES, Array

BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
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
                [[element(moved, source_place(x, x.b, n, j, k), x.b) for j in range(x.m)] for k in range(x.k)]
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


def element(words: Array, place: tuple[int, int, int], kind: str) -> float:
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
