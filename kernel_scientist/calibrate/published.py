"""Calibration on published times: fits the model's constants to half of the (n, k) and reports on both halves.

Fitted are the constants that kernels of one kind determine: L2's share, two latencies, a kernel's start and end.
Launches are not part of the times. The labels (best configurations) are never fitted and belong to held-out (n, k).
"""

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from kernel_scientist.calibrate import fit, tables
from kernel_scientist.calibrate.features import Features, features
from kernel_scientist.calibrate.fit import FitPoint
from kernel_scientist.calibrate.tables import Label, Time
from kernel_scientist.gpu.model import constants, predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError

MACHINES = ("mi300x", "mi325x")
"""Machines of the rows: gfx942 with 304 CUs. They differ in memory bandwidth only."""
GPU = gpus.named(MACHINES[0])
FITTED = ("l2", "latency_ns", "memory_ns", "start_us")
MEMORY_NS = 200.0
"""What a load from main memory takes longer: times determine only its sum with L2's latency. Chosen, not fitted: more
makes products of one row too slow in both halves (docs/log.md)."""
DATA = "ROCm/aiter, times of CK's fp8 block-scaled GEMM"
REVISIONS = ("e4048607a5", "1a4121e559", "1e8ac92007")
HARDWARE = "gfx942 with 304 CUs: MI300X or MI325X"
FEW = 512
"""Rows of A up to which ranks are reported by themselves."""


class TileFit(Record):
    """Predictions for one tile of C."""

    tile: str
    rows: int
    ratio: float
    """Median of predicted / published."""
    error: float | None


class Half(Record):
    """Predicted against published times of some rows, and ranks of published configurations."""

    rows: int
    error: float | None
    """Median of |predicted / published - 1|."""
    worst: float
    rho: float | None
    """Spearman's rho over the rows."""
    tiles: tuple[TileFit, ...]
    labels: int
    rank: float | None
    """Mean share of the other configurations that are predicted to be faster than the published best one; ties count
    half."""
    rank_few: float | None
    """The same for m <= 512."""
    rank_many: float | None


class PublishedFit(Record):
    """Constants fitted to published times, and their provenance."""

    machines: tuple[str, ...] = MACHINES
    data: str = DATA
    revisions: tuple[str, ...] = REVISIONS
    licence: str = "MIT"
    hardware: str = HARDWARE
    timed: str = "the kernel on the device in torch's profiler, inputs not in a cache, without the launch"
    date: str
    constants: dict[str, float | str]
    fitted: Half
    held_out: Half
    missed: dict[str, str]
    """Kernels that could not be compiled and counted, with the reason."""


def calibrate(report: Callable[[str], object]) -> PublishedFit:
    """Fit the constants to the tables and write them, with the figures, to the file in which the model finds them.

    Needs no GPU and no network.
    """
    rows, marked = tables.times(), tables.labels()
    entries = {row.entry.name: row.entry for row in rows}
    entries |= {entry.name: entry for label in marked for entry in (label.best, *label.others)}
    report(f"{len(rows)} times, {len(marked)} labels: compiling and counting {len(entries)} kernels")
    found = features(list(entries.values()), GPU)
    require(found)
    rows = [row for row in rows if row.entry.name in found.loads]
    fitted = [row for row in rows if not row.shape.held_out]
    report(f"fitting {', '.join(FITTED)} to {len(fitted)} times")
    start = replace(Constants(), launch_us=0.0, memory_ns=MEMORY_NS)
    solved, kept = fit.solve(GPU, _points(fitted, found), FITTED, start)
    values = {name: float(f"{getattr(solved, name):.4g}") for name in FITTED}
    report(f"the times do not determine {', '.join(kept)}" if kept else "the times determine all of them")
    date = time.strftime("%Y-%m-%d")
    known = replace(Constants(), **values, kind="published", calibrated=f"{DATA} ({REVISIONS[0]}; {HARDWARE}), {date}")
    made = PublishedFit(
        date=date,
        constants=asdict(known),
        fitted=half(fitted, (), found, known),
        held_out=half([row for row in rows if row.shape.held_out], marked, found, known),
        missed=found.missed,
    )
    constants.PUBLISHED.write_text(json.dumps(made.model_dump(mode="json"), indent=1) + "\n")
    return made


def require(found: Features) -> None:
    """Raise SetupError if no kernel was compiled and counted."""
    if not found.loads:
        reason = next(iter(found.missed.values()), "there is none")
        raise SetupError(f"none of {len(found.missed)} kernels can be compiled and counted here; the first: {reason}")


def half(rows: Sequence[Time], labels: Sequence[Label], found: Features, known: Constants) -> Half:
    """Return the figures of rows and labels with given constants."""
    own = replace(known, launch_us=0.0)
    points = _points(rows, found)
    predicted = {point.name: predict.time_us(GPU, point.loads, own) for point in points}
    worst = max(abs(predicted[point.name] / point.time_us - 1) for point in points)
    ranks = [(label.shape.m, rank(label, found, known)) for label in labels if label.best.name in found.loads]
    return Half(
        rows=len(points),
        error=fit.error(points, predicted),
        worst=round(worst, 4),
        rho=fit.rho(points, predicted),
        tiles=_tiles(points, predicted),
        labels=len(ranks),
        rank=_mean([share for _, share in ranks]),
        rank_few=_mean([share for m, share in ranks if m <= FEW]),
        rank_many=_mean([share for m, share in ranks if m > FEW]),
    )


def _tiles(points: Sequence[FitPoint], predicted: Mapping[str, float]) -> tuple[TileFit, ...]:
    """Return the figures of each tile, the one with most rows first."""
    found: list[TileFit] = []
    for tile, rows in Counter(point.family for point in points).most_common():
        members = [point for point in points if point.family == tile]
        ratio = statistics.median(predicted[point.name] / point.time_us for point in members)
        error = fit.error(members, predicted)
        found.append(TileFit(tile=tile, rows=rows, ratio=round(ratio, 3), error=error))
    return tuple(found)


def rank(label: Label, found: Features, known: Constants) -> float:
    """Return the share of the other configurations that are predicted to be faster than the published best one."""
    best = predict.time_us(GPU, found.loads[label.best.name], known)
    others = [predict.time_us(GPU, found.loads[e.name], known) for e in label.others if e.name in found.loads]
    return statistics.mean([0.5 if abs(t / best - 1) < 1e-6 else float(t < best) for t in others])


def _points(rows: Sequence[Time], found: Features) -> list[FitPoint]:
    """Return rows as points; their family is the tile."""
    return [
        FitPoint(f"{number} {row.entry.name}", row.tile, row.entry.case, tuple(found.loads[row.entry.name]), row.us)
        for number, row in enumerate(rows)
    ]


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.mean(values), 4) if values else None
