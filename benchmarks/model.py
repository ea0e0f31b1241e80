"""The performance model against published measurements: `make bench-model`, `python -m benchmarks.model`.

Prints the figures of `data/published`: predicted against published times of the same tiles, ranks of published best
configurations, and the order of the shapes; rows whose (n, k) were fitted and rows whose (n, k) were not, apart. The
constants are those in use (`data/published/calibration.json`); nothing is fitted. `contest` adds the competition's
entries. Needs no GPU and no network.
Exit code: 0 the goals are met on rows that were not fitted, 1 they are not.
"""

import math
import sys
from dataclasses import dataclass, replace

from scipy.stats import spearmanr

from kernel_scientist.records import environment

environment.prepare()

from benchmarks import contest  # noqa: E402
from kernel_scientist.calibrate import published, tables  # noqa: E402
from kernel_scientist.calibrate.features import features  # noqa: E402
from kernel_scientist.calibrate.published import Half  # noqa: E402
from kernel_scientist.calibrate.suite import CalibrationKernel  # noqa: E402
from kernel_scientist.calibrate.tables import DEEPEST, Shape, Time, entry, setting_of  # noqa: E402
from kernel_scientist.gpu.model import constants, predict  # noqa: E402
from kernel_scientist.gpu.model.constants import Constants  # noqa: E402
from kernel_scientist.hardware import gpus  # noqa: E402

GOALS = {"rank": 0.05, "rank_few": 0.057, "error": 0.065, "worst": 0.4, "rho": 0.97}
"""Limits of the held-out figures; rho is a least value."""
LEAST_RHO = 0.97
"""Goal of the order of the shapes."""
SHAPES = 36
"""Shapes whose best times are compared."""


@dataclass(frozen=True)
class Best:
    """The best time that one source published for a shape, and kernels of ours whose fastest stands for it."""

    shape: Shape
    us: float
    entries: tuple[CalibrationKernel, ...]


def main() -> int:
    """Print the table; return the exit code."""
    rows, labels = tables.times(), tables.labels()
    entries = {e.name: e for label in labels for e in (label.best, *label.others)}
    entries |= {row.entry.name: row.entry for row in rows}
    print(f"{len(rows)} times, {len(labels)} labels: compiling and counting {len(entries)} kernels", file=sys.stderr)
    found = features(list(entries.values()), gpus.named(published.MACHINES[0]))
    published.require(found)
    known = constants.of(published.MACHINES[0])
    rows = [row for row in rows if row.entry.name in found.loads]
    halves = {
        name: published.half(
            [row for row in rows if row.shape.held_out == held],
            labels if held else (),
            found,
            known,
        )
        for name, held in (("fitted", False), ("held out", True))
    }
    print(f"constants: {known.kind}, {known.calibrated}; {len(found.missed)} kernels of the pool do not compile\n")
    print("\n".join(table(halves)))
    order = ordered(bests(), replace(known, launch_us=0.0))
    print(f"\nSpearman's rho of predicted best and best published times over {SHAPES} shapes: {order:.4f}")
    close = contest.show(known)
    return 0 if met(halves["held out"]) and order >= LEAST_RHO and close else 1


def bests() -> list[Best]:
    """Return the best times of shapes with held-out (n, k), evenly spread over their flops."""
    least = dict[Shape, Time]()
    rows = sorted((row for row in tables.times() if row.shape.held_out), key=lambda row: row.us)
    for row in rows:
        least.setdefault(row.shape, row)
    shapes = sorted(least, key=lambda shape: (shape.m * shape.n * shape.k, shape.m, shape.n))
    tiles = sorted({row.tile for row in rows})
    chosen = [shapes[number * (len(shapes) - 1) // (SHAPES - 1)] for number in range(SHAPES)]
    return [
        Best(shape, least[shape].us, tuple(entry(shape, setting_of(tile, DEEPEST)) for tile in tiles))
        for shape in chosen
    ]


def predicted(bests: list[Best], known: Constants) -> list[float]:
    """Return the least predicted time of each shape."""
    gpu = gpus.named(published.MACHINES[0])
    found = features([entry for best in bests for entry in best.entries], gpu)
    loads = [[found.loads[entry.name] for entry in best.entries if entry.name in found.loads] for best in bests]
    return [min((predict.time_us(gpu, each, known) for each in of_shape), default=math.nan) for of_shape in loads]


def ordered(bests: list[Best], known: Constants) -> float:
    """Return Spearman's rho of the predicted best times and the published ones; without launches."""
    return float(spearmanr(predicted(bests, known), [best.us for best in bests]).statistic)


def table(halves: dict[str, Half]) -> list[str]:
    """Return the lines of the table."""
    shown = [("figure", *halves, "goal")]
    for name, words in (
        ("rows", "published times"),
        ("error", "median |predicted / published - 1|"),
        ("worst", "worst"),
        ("rho", "Spearman's rho over the times"),
        ("labels", "published best configurations"),
        ("rank", "rank of the best in the pool (0 best, 0.5 chance)"),
        ("rank_few", "  m <= 512"),
        ("rank_many", "  m > 512"),
    ):
        shown.append((words, *(f"{getattr(half, name)}" for half in halves.values()), f"{GOALS.get(name, '')}"))
    for tile in dict.fromkeys(t.tile for half in halves.values() for t in half.tiles):
        found = [next((t for t in half.tiles if t.tile == tile), None) for half in halves.values()]
        cells = (f"{t.ratio} ({t.rows})" if t else "-" for t in found)
        shown.append((f"predicted / published, tile {tile} (rows)", *cells, ""))
    return ["".join(f"{cell:<{width}}" for cell, width in zip(row, (52, 16, 16, 8), strict=True)) for row in shown]


def met(half: Half) -> bool:
    """Whether the held-out figures meet the goals."""
    figures = {name: getattr(half, name) for name in GOALS}
    if None in figures.values():
        return False
    return all(figures[name] >= limit if name == "rho" else figures[name] <= limit for name, limit in GOALS.items())


if __name__ == "__main__":
    sys.exit(main())
