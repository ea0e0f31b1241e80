"""The tables of `data/published`: kernel times and best configurations that others measured, and the kernels in our
own Triton that stand for theirs.

A row of times names the tile of a CK kernel; our row-major seed with the same tile and four waves stands for it. A
label is the configuration that vLLM's search found fastest for a shape; our seed takes the same tunables.
"""

import csv
import functools
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist import problems
from kernel_scientist.calibrate.suite import CalibrationKernel, Setting
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.gpu.capture import case_shapes
from kernel_scientist.hardware import occupancy
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Case

PROBLEM = "fp8-blockwise-gemm-rowmajor"
DEEPEST = 128
"""Largest BLOCK_K of our kernel, the width of a scale block. CK's tiles of 256 take two of its steps at once."""
SPACE: dict[str, tuple[int, ...]] = {
    "BLOCK_M": (16, 32, 64, 128, 256),
    "BLOCK_N": (32, 64, 128, 256),
    "BLOCK_K": (64, 128),
    "GROUP_M": (1, 16, 32, 64),
    "num_warps": (4, 8),
    "num_stages": (2, 3, 4, 5),
}
"""The space that vLLM searches (benchmark_w8a8_block_fp8.py, release 0.10.2)."""
POOL = 15
"""Random configurations of it that a label is compared with."""


@dataclass(frozen=True)
class Shape:
    """A product: A has m rows, B n rows, both k columns."""

    m: int
    n: int
    k: int

    @property
    def case(self) -> Case:
        """The case of the row-major problem."""
        return Case(sizes={"m": self.m, "n": self.n, "k": self.k}, seed=0)

    @property
    def held_out(self) -> bool:
        """Whether no time of its (n, k) is fitted: by a hash, so that every table is split alike."""
        return zlib.crc32(f"{self.n}x{self.k}".encode()) % 2 == 1


@dataclass(frozen=True)
class Time:
    """A published time of a CK kernel: on the device, without the launch."""

    shape: Shape
    tile: str
    """Its tile of C, such as `64x128`."""
    us: float
    entry: CalibrationKernel


@dataclass(frozen=True)
class Label:
    """The configuration that was found fastest for a shape, and those that it is compared with."""

    shape: Shape
    best: CalibrationKernel
    others: tuple[CalibrationKernel, ...]


def times() -> list[Time]:
    """Return the rows of the table of times."""
    found: list[Time] = []
    for row in rows_of("gemm-fp8-rowmajor.csv"):
        (tile, _, k), shape = row["tile"].rpartition("x"), shape_of(row)
        found.append(Time(shape, tile, float(row["us"]), entry(shape, setting_of(tile, int(k)))))
    return found


def labels(chosen: Sequence[Shape] | None = None, pool: int = POOL) -> list[Label]:
    """Return the labels of shapes, by default of 36: one small m, one medium and one large of each held-out (n, k)."""
    settings, rows = _pool(pool), {shape_of(row): row for row in rows_of("vllm-block-fp8-mi300x.csv")}
    found: list[Label] = []
    for shape in chosen or _usual(list(rows)):
        best = {name: int(rows[shape][name]) for name in ("BLOCK_M", "BLOCK_N", "GROUP_M", "num_warps")}
        best |= {"BLOCK_K": min(DEEPEST, int(rows[shape]["BLOCK_K"])), "num_stages": 2}  # Triton's default on AMD
        others = tuple(entry(shape, setting) for setting in settings if not _alike(setting, best))
        found.append(Label(shape, entry(shape, best), others))
    return found


def setting_of(tile: str, k: int) -> Setting:
    """Return the setting of our kernel for a tile such as `64x128` of a CK kernel with blocks of k."""
    m, n = (int(size) for size in tile.split("x"))
    sizes = {"BLOCK_M": max(16, m), "BLOCK_N": n, "BLOCK_K": min(DEEPEST, k)}
    return {**sizes, "num_warps": 4, "num_stages": 2, "GROUP_M": 8}


def entry(shape: Shape, setting: Setting) -> CalibrationKernel:
    """Return our kernel with tunables set, on a shape. MFMA is 16 x 16, as in all of vLLM's files for MI300X."""
    problem, case, source = _problem(), shape.case, _source(tuple(sorted(setting.items())))
    label = "-".join(f"{name}{value}" for name, value in sorted(setting.items()))
    return CalibrationKernel(
        problem.name, case.name, f"{case.name} {label}", source, case_shapes.described(problem, case)
    )


@functools.cache
def _problem() -> Problem:
    return problems.find(PROBLEM)


@functools.cache
def _source(setting: tuple[tuple[str, int], ...]) -> str:
    seed = KernelSource((_problem().folder / "seeds" / "triton_tiled.py").read_text())
    return seed.with_tunables({"matrix_instr_nonkdim": 16, **dict(setting)}).text


def _pool(count: int) -> list[Setting]:
    rng, most, found = random.Random(0), occupancy.limits("gfx942").lds_workgroup, list[Setting]()
    while len(found) < count:
        one = {name: rng.choice(values) for name, values in SPACE.items()}
        buffers = (one["num_stages"] - 1) * (one["BLOCK_M"] + one["BLOCK_N"]) * one["BLOCK_K"]
        if buffers <= most and one not in found:
            found.append(one)
    return found


def _alike(one: Setting, other: Setting) -> bool:
    """Whether two settings differ in the order of programs at most, which the model hardly sees."""
    return all(one[name] == other[name] for name in SPACE if name != "GROUP_M")


def _usual(rows: Sequence[Shape]) -> list[Shape]:
    pairs = sorted({(shape.n, shape.k) for shape in rows if shape.held_out})
    sizes = ((16, 64, 128), (256, 512, 1024), (2048, 4096, 4096))
    return [Shape(few[number % 3], n, k) for number, (n, k) in enumerate(pairs) for few in sizes]


def shape_of(row: dict[str, str]) -> Shape:
    """Return the shape of a table's row."""
    return Shape(int(row["m"]), int(row["n"]), int(row["k"]))


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in `data/published`."""
    with (environment.root() / "data" / "published" / name).open(newline="") as file:
        return list(csv.DictReader(file))
