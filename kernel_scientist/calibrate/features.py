"""What the model is told of the suite's kernels: their launches on a GPU, compiled and traced where none is needed."""

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
"""Per kernel under one setting, all its sizes."""
MOST_AT_ONCE = 8


@dataclass(frozen=True)
class Features:
    """Launches by entry, and why the others have none."""

    loads: dict[str, list[Load]]
    missed: dict[str, str]


def features(entries: Sequence[Entry], gpu: Gpu, at_once: int = 0) -> Features:
    """Compile and trace every entry, `at_once` sources at a time (0: as many as there are cores)."""
    by_source: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        by_source.setdefault((entry.family, entry.source), []).append(entry)
    many = at_once or min(MOST_AT_ONCE, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(many) as pool:
        parts = list(pool.map(_seen, by_source.values(), itertools.repeat(gpu)))
    return Features(
        {name: loads for part in parts for name, loads in part.loads.items()},
        {name: why for part in parts for name, why in part.missed.items()},
    )


def _seen(same: Sequence[Entry], gpu: Gpu) -> Features:
    """Inspect entries of one family and source."""
    inputs = {entry.case: entry.inputs for entry in same}
    try:
        found = inspect.seen(same[0].source, inputs, gpu, TIMEOUT_S)
    except KernelFailure as failure:
        return Features({}, dict.fromkeys((entry.name for entry in same), failure.reason))
    loads = {entry.name: found.loads(entry.case) for entry in same}
    words = found.report.log or "; ".join(found.report.missed) or "not all of its launches were traced"
    return Features(
        {name: seen for name, seen in loads.items() if seen},
        {name: words[:400] for name, seen in loads.items() if not seen},
    )
