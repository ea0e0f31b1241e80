"""The two entries of GPU MODE's AMD competition (fp8-mm, MI300X) whose times per shape are known, predicted.

Both are HIP, and their text is not ours, so a Triton kernel of ours takes the steps, tiles, waves and k splits that
each author published; `contest.entry` predicts an entry by its own file. The competition's clock is the host's:
`HOST_US` stands for what it adds. No constant is fitted here.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_scientist import problems
from kernel_scientist.calibrate import published
from kernel_scientist.calibrate.features import features
from kernel_scientist.calibrate.suite import CalibrationKernel, Setting
from kernel_scientist.calibrate.tables import Shape, rows_of, shape_of
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.gpu.capture import case_shapes
from kernel_scientist.gpu.model import predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus

PROBLEM = "fp8-blockwise-gemm"
TIMES = "competition-fp8-gemm.csv"
WINNER, FIFTH = "RadeonFlow", "luongthecong123"
"""Entries with times per shape: the winner's own checker's, and the competition's."""
KERNELS = {WINNER: "winner.py", FIFTH: "fifth.py"}
"""They take m in whole tiles, as the entries do. With tiles of 16 rows both pass the problem's checking cases."""
WINNER_US = 103.392
"""Official geometric mean of the winner (award slide of 12 June 2025)."""
HOST_US = WINNER_US - 92.03
"""What the competition's host clock (around call and synchronization) adds: the winner's official time less its time in
the winner's own checker (README of github.com/RadeonFlow/RadeonFlow_Kernels)."""
SPLITS = {
    Shape(1024, 1536, 7168): 4,
    Shape(1024, 3072, 1536): 2,
    Shape(1024, 576, 7168): 8,
    Shape(1024, 512, 7168): 8,
    Shape(1024, 4608, 7168): 2,
    Shape(6144, 576, 7168): 2,
    Shape(6144, 512, 7168): 2,
}
"""Parts of k in the winner's table of launches, 1 for other shapes (src/gemm/gemm_launcher.cpp; MIT licence)."""
TILES: tuple[Setting, ...] = (
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "matrix_instr_nonkdim": 32},
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "matrix_instr_nonkdim": 16},
)
"""The fifth's tiles, by its README: for large m and n, and for small ones with large k. The faster one counts."""
MOST_FACTOR = 1.3
"""Goal of predicted / published times, or the inverse."""


@dataclass(frozen=True)
class ShapeRow:
    """One shape of an entry. Times are in us."""

    shape: Shape
    predicted_us: float
    published_us: float | None

    @property
    def factor(self) -> float | None:
        """Predicted / published time."""
        return self.predicted_us / self.published_us if self.published_us else None


def rows(known: Constants) -> dict[str, list[ShapeRow]]:
    """Return both entries on all shapes of the competition, each with what its clock contains."""
    times = {(row["entry"], shape_of(row)): float(row["us"]) for row in rows_of(TIMES)}
    shapes = [shape for entry, shape in times if entry == FIFTH]
    winner: dict[Shape, Sequence[Setting]] = {s: [{"SPLIT_K": SPLITS.get(s, 1)}] for s in shapes}
    return {
        name: [
            ShapeRow(shape, us, times.get((name, shape))) for shape, us in predicted(name, settings, constants).items()
        ]
        for name, settings, constants in (
            (WINNER, winner, known),
            (FIFTH, dict.fromkeys(shapes, TILES), replace(known, launch_us=HOST_US)),
        )
    }


def predicted(entry: str, settings: Mapping[Shape, Sequence[Setting]], known: Constants) -> dict[Shape, float]:
    """Return the predicted time of each shape in us, of the fastest of its settings."""
    gpu, problem = gpus.named(published.MACHINES[0]), problems.find(PROBLEM)
    kernel = KernelSource(Path(__file__).with_name(KERNELS[entry]).read_text())
    entries = {
        shape: [
            CalibrationKernel(
                PROBLEM,
                shape.case.name,
                f"{entry} {shape.case.name} {number}",
                kernel.with_tunables(dict(setting)).text,
                case_shapes.described(problem, shape.case),
            )
            for number, setting in enumerate(chosen)
        ]
        for shape, chosen in settings.items()
    }
    loads = features([entry for each in entries.values() for entry in each], gpu).loads
    return {
        shape: min(predict.time_us(gpu, loads[entry.name], known) for entry in each) for shape, each in entries.items()
    }


def show(known: Constants) -> bool:
    """Print all shapes and the official means; return whether every factor is within `MOST_FACTOR`."""
    found = rows(known)
    print("\ncompetition: predicted us, published us, ratio")
    for name, of_entry in found.items():
        factors = [row.factor for row in of_entry if row.factor]
        print(f"{name}:")
        for row in of_entry:
            if row.factor:
                print(f"  {row.shape.case.name:<22}{row.predicted_us:8.1f}{row.published_us:8.1f}{row.factor:8.2f}")
        print(f"  {sum(map(_close, factors))} of {len(factors)} within a factor of {MOST_FACTOR}")
    print(f"geometric means of 18 shapes by the host's clock, which adds {HOST_US:.1f} us to the winner's:")
    means = {
        WINNER: (statistics.geometric_mean(row.predicted_us for row in found[WINNER]) + HOST_US, WINNER_US),
        FIFTH: (
            statistics.geometric_mean(row.predicted_us for row in found[FIFTH]),
            statistics.geometric_mean(row.published_us or 0.0 for row in found[FIFTH]),
        ),
    }
    for name, (us, official) in means.items():
        print(f"  {name:<22}{us:8.1f}{official:8.1f}{us / official:8.2f}")
    factors = [row.factor for of_entry in found.values() for row in of_entry if row.factor]
    return all(map(_close, (*factors, *(us / official for us, official in means.values()))))


def _close(factor: float) -> bool:
    return max(factor, 1 / factor) <= MOST_FACTOR
