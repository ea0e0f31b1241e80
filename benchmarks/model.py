"""The performance model against published measurements: `make bench-model`, `python -m benchmarks.model`.

Prints the figures of `data/published`: predicted against published times of the same tiles, ranks of published best
configurations, and the order of the shapes; rows whose (n, k) were fitted and rows whose (n, k) were not, apart. The
constants are those in use (`data/published/calibration.json`); nothing is fitted. Needs no GPU and no network.
Exit code: 0 the goals are met on the held-out rows, 1 they are not.
"""

import sys

from kernel_scientist.records import environment

environment.prepare()

from kernel_scientist.calibrate import published, tables  # noqa: E402
from kernel_scientist.calibrate.features import features  # noqa: E402
from kernel_scientist.calibrate.published import Half  # noqa: E402
from kernel_scientist.gpu.model import constants  # noqa: E402
from kernel_scientist.hardware import gpus  # noqa: E402

GOALS = {"rank": 0.06, "rank_few": 0.08, "error": 0.08, "worst": 0.6, "rho": 0.97}
"""Limits of the held-out figures; rho is a least value."""


def main() -> int:
    """Print the table; return the exit code."""
    rows, labels = tables.times(), tables.labels()
    entries = {e.name: e for label in labels for e in (label.best, *label.others)}
    entries |= {row.entry.name: row.entry for row in rows}
    print(f"{len(rows)} times, {len(labels)} labels: compiling and tracing {len(entries)} kernels", file=sys.stderr)
    found = features(list(entries.values()), gpus.named(published.MACHINES[0]))
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
    return 0 if met(halves["held out"]) else 1


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
