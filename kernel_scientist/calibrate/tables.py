"""The tables of `data/published`: kernel times and best configurations that others measured, and the kernels in our
own Triton that stand for theirs.

A row of times names the tile of a CK kernel; our row-major seed with the same tile and four waves stands for it. A
label is the configuration that vLLM's search found fastest for a shape; our seed takes the same tunables. A best time
names no kernel; the fastest of several of ours stands for it.
"""

import csv
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist import problems
from kernel_scientist.calibrate.suite import Entry, Setting
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.gpu.capture import case_shapes
from kernel_scientist.hardware import occupancy
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
SHAPES = 36
"""Shapes whose best times are compared."""
CONTEST = "fp8-blockwise-gemm"
"""Problem of the competition: the operands are column-major."""
ENTERED: tuple[Setting, ...] = (
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "num_warps": 8, "matrix_instr_nonkdim": 32},
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "num_warps": 4},
)
"""Tiles of luongthecong123's entry. Its larger tile has 16 waves, for which our seed has no tunable."""


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
    entry: Entry


@dataclass(frozen=True)
class Label:
    """The configuration that was found fastest for a shape, and those that it is compared with."""

    shape: Shape
    best: Entry
    others: tuple[Entry, ...]


@dataclass(frozen=True)
class Best:
    """The best time that one source published for a shape, and kernels of ours whose fastest stands for it."""

    shape: Shape
    us: float
    entries: tuple[Entry, ...]


def folder() -> Path:
    """Return the folder of the tables."""
    return environment.root() / "data" / "published"


def times() -> list[Time]:
    """Return the rows of the table of times."""
    made = _Entries()
    found: list[Time] = []
    for row in _rows("gemm-fp8-rowmajor.csv"):
        tile, _, k = row["tile"].rpartition("x")
        shape = _shape(row)
        found.append(Time(shape, tile, float(row["us"]), made.entry(shape, _tile(tile, int(k)))))
    return found


def labels(chosen: Sequence[Shape] | None = None, pool: int = POOL) -> list[Label]:
    """Return the labels of shapes, by default of 36: one small m, one medium and one large of each held-out (n, k)."""
    made, settings = _Entries(), _pool(pool)
    rows = {_shape(row): row for row in _rows("vllm-block-fp8-mi300x.csv")}
    found: list[Label] = []
    for shape in chosen or _usual(list(rows)):
        best = {name: int(rows[shape][name]) for name in ("BLOCK_M", "BLOCK_N", "GROUP_M", "num_warps")}
        best |= {"BLOCK_K": min(DEEPEST, int(rows[shape]["BLOCK_K"])), "num_stages": 2}  # Triton's default on AMD
        others = tuple(made.entry(shape, setting) for setting in settings if not _alike(setting, best))
        found.append(Label(shape, made.entry(shape, best), others))
    return found


def bests() -> list[Best]:
    """Return the best times of shapes with held-out (n, k), evenly spread over their flops."""
    made, least = _Entries(), dict[Shape, Time]()
    rows = sorted((row for row in times() if row.shape.held_out), key=lambda row: row.us)
    for row in rows:
        least.setdefault(row.shape, row)
    shapes = sorted(least, key=lambda shape: (shape.m * shape.n * shape.k, shape.m, shape.n))
    tiles = sorted({row.tile for row in rows})
    chosen = [shapes[number * (len(shapes) - 1) // (SHAPES - 1)] for number in range(SHAPES)]
    return [
        Best(shape, least[shape].us, tuple(made.entry(shape, _tile(tile, DEEPEST)) for tile in tiles))
        for shape in chosen
    ]


def contest() -> dict[str, list[Best]]:
    """Return the competition's entries whose times are known shape by shape; they contain the launch."""
    made, found = _Entries(CONTEST), dict[str, list[Best]]()
    for row in _rows("competition-fp8-gemm.csv"):
        shape = _shape(row)
        best = Best(shape, float(row["us"]), tuple(made.entry(shape, tile) for tile in ENTERED))
        found.setdefault(row["entry"], []).append(best)
    return found


def _tile(tile: str, k: int) -> Setting:
    """Return the setting of our kernel for a tile such as `64x128` of a CK kernel with blocks of k."""
    m, n = (int(size) for size in tile.split("x"))
    sizes = {"BLOCK_M": max(16, m), "BLOCK_N": n, "BLOCK_K": min(DEEPEST, k)}
    return {**sizes, "num_warps": 4, "num_stages": 2, "GROUP_M": 8}


class _Entries:
    """Makes entries; the sources and the descriptions of inputs are made once."""

    def __init__(self, problem: str = PROBLEM) -> None:
        self._problem = problems.find(problem)
        self._kernel = KernelSource((self._problem.folder / "seeds" / "triton_tiled.py").read_text())
        self._sources: dict[str, str] = {}

    def entry(self, shape: Shape, setting: Setting) -> Entry:
        """Return our kernel with tunables set, on a shape. MFMA is 16 x 16, as in all of vLLM's files for MI300X."""
        label = "-".join(f"{name}{value}" for name, value in sorted(setting.items()))
        if label not in self._sources:
            self._sources[label] = self._kernel.with_tunables({"matrix_instr_nonkdim": 16, **setting}).text
        case, source = shape.case, self._sources[label]
        return Entry(
            self._problem.name, case.name, f"{case.name} {label}", source, case_shapes.described(self._problem, case)
        )


def _pool(count: int) -> list[Setting]:
    """Return random configurations of the space whose buffers fit into local memory."""
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


def _shape(row: dict[str, str]) -> Shape:
    return Shape(int(row["m"]), int(row["n"]), int(row["k"]))


def _rows(name: str) -> list[dict[str, str]]:
    with (folder() / name).open(newline="") as file:
        return list(csv.DictReader(file))
