"""The GPU of this host, CUDA or ROCm, and times of the suite on it: outputs are checked, then calls are timed with cold
caches.

The kernels are our own, so they run in this process without a sandbox. A call is timed by events on the device. A sweep
of its caches is queued before it, so Python starts the kernel while the GPU still sweeps; calls for which the GPU had
to wait are left out.
"""

import random
import runpy
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from scipy.stats import quantile_test

from kernel_scientist.calibrate import suite
from kernel_scientist.calibrate.suite import Entry
from kernel_scientist.hardware import gpu as host_gpu
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import digest
from kernel_scientist.sandbox import device_lock, protocol

DEVICE = "cuda"
"""torch's name of the GPU, on ROCm as well."""
SWEEP_BYTES = 1 << 30
"""Read between calls: 4 times MI300X's Infinity Cache, 20 times H100's L2; it takes 0.2 to 0.4 ms. It is not written,
because modified lines would be written back while the call is timed."""
ROUNDS, CALLS, LEAST = 6, 6, 12
"""Timed visits of every entry, timed calls per visit, and valid calls that an entry needs."""
CHECK_S = 150.0
"""Limit of building and checking, in random order; later entries are left out."""
LOCK_S = 600.0


class Device(Record):
    """One GPU of this host."""

    name: str
    """As the driver reports it."""
    platform: str
    """`cuda` or `rocm`."""
    platform_version: str
    torch: str
    triton: str
    state: dict[str, str]
    """Driver, clocks, temperature, power at the beginning (`hardware.gpu.state`)."""


class Measured(Record):
    """The time of one entry."""

    name: str
    time_us: float
    """Median."""
    interval_us: tuple[float, float]
    """95 % interval of the median, by order statistics."""
    calls: int
    left_out: int
    """Calls left out: events unusable (on ROCm they may be zero or negative), or the GPU had to wait."""


@dataclass
class _Candidate:
    """An entry whose output is correct, with its inputs on the device."""

    entry: Entry
    kernel: Callable[[Any], Any]
    data: tuple[Any, ...]
    calls_us: list[float | None] = field(default_factory=list[float | None])
    """None: the call's events are not usable."""


def present() -> Device | None:
    """Return the first GPU that torch can use, or None."""
    if not torch.cuda.is_available():
        return None
    import triton

    return Device(
        name=gpus.name_of("cuda"),
        platform="rocm" if torch.version.hip else "cuda",
        platform_version=str(torch.version.hip or torch.version.cuda),
        torch=torch.__version__,
        triton=triton.__version__,
        state=host_gpu.state(),
    )


def known(device: Device, machine: str = "") -> Gpu:
    """Return a device's entry in the table of GPUs; `machine` names it if the driver's name does not identify it.

    Raises SetupError if the table has no such entry, or the driver's name identifies another one.
    """
    found = gpus.detected(device.name)
    gpu = gpus.named(machine) if machine else found
    if gpu is None:
        raise SetupError(
            f"the GPU here, {device.name!r}, is not in the table of machines ({', '.join(gpus.GPUS)}); "
            "name its entry with --machine, or add it to kernel_scientist/hardware/gpus.py"
        )
    if found not in (None, gpu):
        raise SetupError(f"the GPU here, {device.name!r}, is {found.name}, not {gpu.name}")
    return gpu


def measure(device: Device, entries: Sequence[Entry]) -> tuple[dict[str, Measured], dict[str, str]]:
    """Check every entry against torch, then time it. Raises DeviceBusyError.

    Return the times by entry, and the reasons why other entries have none.
    """
    rng, measured, dropped = random.Random(0), dict[str, Measured](), dict[str, str]()
    with device_lock.device(host_gpu.lock(device.platform), LOCK_S), tempfile.TemporaryDirectory() as folder:
        candidates = _checked(rng.sample(list(entries), len(entries)), Path(folder), dropped)
        _time(candidates, rng)
    for candidate in candidates:
        name, times = candidate.entry.name, [time_us for time_us in candidate.calls_us if time_us is not None]
        if len(times) < LEAST:
            dropped[name] = f"only {len(times)} calls could be timed"
        else:
            measured[name] = _summary(name, times, len(candidate.calls_us))
    return measured, dropped


def _checked(entries: Sequence[Entry], folder: Path, dropped: dict[str, str]) -> list[_Candidate]:
    """Build every entry and compare its output with torch's; entries of a case share their inputs."""
    candidates: list[_Candidate] = []
    inputs: dict[tuple[str, str], tuple[Any, ...]] = {}
    kernels: dict[str, Callable[[Any], Any]] = {}
    end = time.monotonic() + CHECK_S
    for entry in entries:
        if time.monotonic() > end:
            dropped[entry.name] = f"not reached: building and checking took {CHECK_S:g} s"
            continue
        key = (entry.family, entry.case)
        try:
            kernel = kernels[entry.source] = kernels.get(entry.source) or imported(entry.source, folder)
            data = inputs[key] = inputs.get(key) or _drawn(entry.inputs, len(inputs))
            data[-1].fill_(float("nan"))
            deviation = suite.deviation(entry.family, data, kernel(data))
            torch.cuda.empty_cache()
        except Exception as error:  # a compiler or a driver may raise anything, and it affects only this entry
            dropped[entry.name] = f"{type(error).__name__}: {error}"[:400]
            continue
        if deviation <= suite.tolerance(entry.family):
            candidates.append(_Candidate(entry, kernel, data))
        else:
            dropped[entry.name] = f"wrong: an element is off by {deviation:.3g} of its size"
    return candidates


def _drawn(header: protocol.Header, seed: int) -> tuple[Any, ...]:
    generator = torch.Generator(DEVICE).manual_seed(seed)

    def draw(item: protocol.Header) -> torch.Tensor:
        values = torch.empty(item["shape"], dtype=torch.bfloat16, device=DEVICE).normal_(generator=generator)
        return values.to(getattr(torch, item["dtype"]))

    return tuple(draw(item) for item in header["items"])


def imported(source: str, folder: Path) -> Callable[[Any], Any]:
    """Import a kernel from a file of its own, because Triton reads its source from there; return its function."""
    path = folder / f"suite_{digest(source)}.py"
    path.write_text(source)
    return runpy.run_path(str(path))["custom_kernel"]


def _time(candidates: Sequence[_Candidate], rng: random.Random) -> None:
    """Visit all entries in a new order each round, so that drift affects all of them.

    The first round only lets clocks and power settle; the first call of a visit warms code and address translations up.
    """
    swept = torch.ones(SWEEP_BYTES // 4, dtype=torch.float32, device=DEVICE)
    for round_number in range(1 + ROUNDS):
        for candidate in rng.sample(list(candidates), len(candidates)):
            calls = [_call_us(candidate, swept) for _ in range(1 + CALLS)]
            candidate.calls_us += calls[1:] if round_number else []


def _call_us(candidate: _Candidate, swept: torch.Tensor) -> float | None:
    """Return the time of one call; None if the events are not usable."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    swept.sum()
    start.record()
    candidate.kernel(candidate.data)
    end.record()
    waited = start.query()  # the sweep is over already: the GPU was idle until the kernel was started
    torch.cuda.synchronize()
    time_us = start.elapsed_time(end) * 1000
    return time_us if time_us > 0 and not waited else None


def _summary(name: str, times: Sequence[float], calls: int) -> Measured:
    low, high = quantile_test(times, p=0.5).confidence_interval(0.95)
    return Measured(
        name=name,
        time_us=statistics.median(times),
        interval_us=(float(low), float(high)),
        calls=len(times),
        left_out=calls - len(times),
    )
