"""Features of kernels for the model: their launches, compiled and counted without a GPU, and kept on disk."""

import itertools
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from kernel_scientist.calibrate.suite import CalibrationKernel
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.model.issue import Issue
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import CodeObject
from kernel_scientist.records.kernel import digest
from kernel_scientist.sandbox.failure import KernelFailure

TIMEOUT_S = 400.0
"""Time limit in seconds per source, for all its sizes."""
MOST_PROCESSES = 8
MADE_BY = ("gpu/capture", "gpu/isa", "gpu/machine", "gpu/model/executed.py", "gpu/toolchains", "hardware")
"""Code on which the features depend; the model itself is not among it."""


@dataclass(frozen=True)
class Features:
    """Launches by entry, and the reasons why other entries have none."""

    loads: dict[str, list[KernelLoad]]
    missed: dict[str, str]


def features(entries: Sequence[CalibrationKernel], gpu: Gpu) -> Features:
    """Compile and count every entry that is not on the disk; sources are processed in parallel."""
    with ThreadPoolExecutor(min(MOST_PROCESSES, len(os.sched_getaffinity(0)))) as pool:
        found = Features({}, {})
        for part in pool.map(_kept, _by_source(entries), itertools.repeat(gpu)):
            found.loads.update(part.loads)
            found.missed.update(part.missed)
    return found


def missing(entries: Sequence[CalibrationKernel], gpu: Gpu) -> int:
    """Return how many sources `features` would have to compile and count, because they are not on the disk."""
    return sum(not _file(source, gpu).exists() for source in _by_source(entries))


def _by_source(entries: Sequence[CalibrationKernel]) -> list[list[CalibrationKernel]]:
    found: dict[tuple[str, str], list[CalibrationKernel]] = {}
    for entry in entries:
        found.setdefault((entry.family, entry.source), []).append(entry)
    return list(found.values())


def _file(entries: Sequence[CalibrationKernel], gpu: Gpu) -> Path:
    """Return the file for entries of one family and source; its name changes with whatever they depend on."""
    key = json.dumps(
        [
            gpu.name,
            entries[0].source,
            [(e.name, e.inputs) for e in entries],
            [*Traffic.__dataclass_fields__, *Issue.__dataclass_fields__],
            *(metadata.version(package).partition("+")[0] for package in ("triton", "torch")),
        ]
    )
    return environment.cache_folder() / "features" / f"{digest(key + environment.sources_digest(*MADE_BY))}.json"


def _kept(entries: Sequence[CalibrationKernel], gpu: Gpu) -> Features:
    """Return the features of entries of one family and source, from the disk if nothing they depend on has changed."""
    file = _file(entries, gpu)
    if file.exists():
        return read(file.read_text())
    found = _inspected(entries, gpu)
    if found.loads:
        environment.keep(file, written(found))
    return found


def written(found: Features) -> str:
    """Return features as JSON: each code object once, and what each entry's launches do."""
    codes = {load.code.digest: load.code.model_dump() for loads in found.loads.values() for load in loads}
    loads = {
        n: [[load.code.digest, asdict(load.traffic), asdict(load.issue)] for load in loads]
        for n, loads in found.loads.items()
    }
    return json.dumps({"codes": codes, "loads": loads, "missed": found.missed})


def read(text: str) -> Features:
    """Return the features that `written` wrote."""
    content = json.loads(text)
    codes = {name: CodeObject.model_validate(code) for name, code in content["codes"].items()}
    loads = {
        n: [KernelLoad(codes[c], Traffic(**t), Issue(**i)) for c, t, i in loads]
        for n, loads in content["loads"].items()
    }
    return Features(loads, content["missed"])


def _inspected(entries: Sequence[CalibrationKernel], gpu: Gpu) -> Features:
    try:
        inputs = {entry.case: entry.inputs for entry in entries}
        found = inspect.seen(entries[0].source, inputs, gpu, TIMEOUT_S, counts=True)
    except KernelFailure as failure:
        return Features({}, dict.fromkeys((entry.name for entry in entries), failure.reason))
    loads = {entry.name: found.loads(entry.case) for entry in entries}
    uncounted = next((one.uncounted for one in found.answer.launches if one.uncounted), "")
    reason = found.report.log or "; ".join(found.report.missed) or uncounted or "it launched nothing"
    return Features(
        {name: launches for name, launches in loads.items() if launches},
        {name: reason[:400] for name, launches in loads.items() if not launches},
    )
