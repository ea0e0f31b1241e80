"""Features of the suite's kernels for the model: their launches, compiled and traced without a GPU."""

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kernel_scientist.calibrate.suite import Entry
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.model.predict import Load
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.sandbox.failure import KernelFailure

TIMEOUT_S = 120.0
"""Time limit in seconds per source, for all its sizes."""
MOST_PROCESSES = 8


@dataclass(frozen=True)
class Features:
    """Launches by entry, and the reasons why other entries have none."""

    loads: dict[str, list[Load]]
    missed: dict[str, str]


def features(entries: Sequence[Entry], gpu: Gpu) -> Features:
    """Compile and trace every entry; sources are processed in parallel."""
    by_source: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        by_source.setdefault((entry.family, entry.source), []).append(entry)
    with ThreadPoolExecutor(min(MOST_PROCESSES, len(os.sched_getaffinity(0)))) as pool:
        parts = list(pool.map(_inspected, by_source.values(), itertools.repeat(gpu)))
    return Features(
        {name: loads for part in parts for name, loads in part.loads.items()},
        {name: reason for part in parts for name, reason in part.missed.items()},
    )


def _inspected(entries: Sequence[Entry], gpu: Gpu) -> Features:
    """Inspect entries of one family and source."""
    try:
        found = inspect.seen(entries[0].source, {entry.case: entry.inputs for entry in entries}, gpu, TIMEOUT_S)
    except KernelFailure as failure:
        return Features({}, dict.fromkeys((entry.name for entry in entries), failure.reason))
    loads = {entry.name: found.loads(entry.case) for entry in entries}
    reason = found.report.log or "; ".join(found.report.missed) or "not all of its launches were traced"
    return Features(
        {name: launches for name, launches in loads.items() if launches},
        {name: reason[:400] for name, launches in loads.items() if not launches},
    )
