"""The GPU of this host, CUDA or ROCm, and times of the suite on it: outputs are checked, then calls are timed with cold
caches.

The kernels are our own, so they run in this process without a sandbox. They are taken in random order and in groups:
when the time is over, what has been timed is a fair sample of the suite.

A call is timed by events on the device. A sweep of its caches is queued before it, so Python starts the kernel while
the GPU still sweeps; calls for which the GPU had to wait are left out.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from scipy.stats import quantile_test

from kernel_scientist.calibrate import builds, suite
from kernel_scientist.calibrate.builds import DEVICE
from kernel_scientist.calibrate.suite import CalibrationKernel
from kernel_scientist.calibrate.times import Dropped, HostGpu, MeasuredTime
from kernel_scientist.hardware import gpu as host_gpu
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import device_lock, device_queue, protocol

SWEEP_BYTES = 1 << 30
"""Read between calls: 4 times MI300X's Infinity Cache, 20 times H100's L2; it takes 0.2 to 0.4 ms. It is not written,
because modified lines would be written back while the call is timed."""
ROUNDS, CALLS, LEAST = 6, 6, 12
"""Timed visits of every entry, timed calls per visit, and valid calls that an entry needs."""
GROUP = 40
"""Entries that are checked, then timed together, then reported."""
SECONDS = 300.0
"""Limit of building, checking and timing, unless another is given; entries beyond it are left out."""
BUILD_SHARE = 0.4
"""Share of the time after which compiling ahead is ended."""
LOCK_S = 600.0


@dataclass
class _Candidate:
    """An entry whose output is correct, with its inputs on the device."""

    entry: CalibrationKernel
    kernel: Callable[[Any], Any]
    data: tuple[Any, ...]
    calls_us: list[float | None] = field(default_factory=list[float | None])
    """None: the call's events are not usable."""


def present() -> HostGpu | None:
    """Return the first GPU that torch can use, or None."""
    if not torch.cuda.is_available():
        return None
    import triton

    return HostGpu(
        name=gpus.name_of("cuda"),
        platform="rocm" if torch.version.hip else "cuda",
        platform_version=str(torch.version.hip or torch.version.cuda),
        torch=torch.__version__,
        triton=triton.__version__,
        state=host_gpu.state(),
    )


def known(device: HostGpu, machine: str = "") -> Gpu:
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
    if not gpu.arch.startswith("gfx"):
        raise SetupError(
            f"there is no model of {gpu.name} to calibrate: only code for AMD's GPUs is counted without them"
        )
    return gpu


def measure(
    device: HostGpu,
    entries: Sequence[CalibrationKernel],
    seconds: float = SECONDS,
    report: Callable[[MeasuredTime | Dropped], object] = lambda line: None,
) -> None:
    """Check every entry against torch, then time it, for at most so long; report each one as soon as it is known.

    Raises DeviceBusyError.
    """
    rng, end = random.Random(0), time.monotonic() + seconds
    order = rng.sample(list(entries), len(entries))
    lock = device_lock.device(host_gpu.lock(device.platform), min(LOCK_S, seconds), purpose="calibrate")
    with lock, tempfile.TemporaryDirectory() as folder:
        builds.ahead(order, Path(folder), (end - time.monotonic()) * BUILD_SHARE)
        bench = _Bench(Path(folder), end, report)
        for first in range(0, len(order), GROUP):
            device_queue.progressed()
            candidates = bench.checked(order[first : first + GROUP])
            _time(candidates, rng, end)
            for candidate in candidates:
                report(_result(candidate))


@dataclass(frozen=True)
class _Bench:
    """Kernels that were built, and inputs on the device; entries of a case share their inputs."""

    folder: Path
    end: float
    report: Callable[[Dropped], object]
    inputs: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict[tuple[str, str], tuple[Any, ...]])
    kernels: dict[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])

    def checked(self, entries: Sequence[CalibrationKernel]) -> list[_Candidate]:
        """Build entries and compare their outputs with torch's; report those that cannot be timed."""
        found: list[_Candidate] = []
        for entry in entries:
            try:
                found.append(self._checked(entry))
            except _UnusableError as error:
                self.report(Dropped(name=entry.name, reason=str(error)))
        return found

    def _checked(self, entry: CalibrationKernel) -> _Candidate:
        if time.monotonic() > self.end:
            raise _UnusableError("not reached in the time that was given")
        try:
            key, inputs = (entry.family, entry.case), self.inputs
            kernel = self.kernels.get(entry.source) or suite.imported(entry.source, self.folder)
            self.kernels[entry.source] = kernel
            data = inputs[key] = inputs.get(key) or _drawn(entry.inputs, len(inputs))
            data[-1].fill_(float("nan"))
            deviation = suite.deviation(entry.family, data, kernel(data))
            torch.cuda.empty_cache()
        except Exception as error:  # a compiler or a driver may raise anything, and it affects only this entry
            raise _UnusableError(f"{type(error).__name__}: {error}"[:400]) from error
        if deviation <= suite.tolerance(entry.family):
            return _Candidate(entry, kernel, data)
        raise _UnusableError(f"wrong: an element is off by {deviation:.3g} of its size")


class _UnusableError(Exception):
    """An entry cannot be timed; the words say why."""


def _result(candidate: _Candidate) -> MeasuredTime | Dropped:
    times = [time_us for time_us in candidate.calls_us if time_us is not None]
    if len(times) < LEAST:
        return Dropped(name=candidate.entry.name, reason=f"only {len(times)} calls could be timed")
    return _summary(candidate.entry.name, times, len(candidate.calls_us))


def _drawn(header: protocol.Header, seed: int) -> tuple[Any, ...]:
    generator = torch.Generator(DEVICE).manual_seed(seed)

    def draw(item: protocol.Header) -> torch.Tensor:
        values = torch.empty(item["shape"], dtype=torch.bfloat16, device=DEVICE).normal_(generator=generator)
        return values.to(getattr(torch, item["dtype"]))

    return tuple(draw(item) for item in header["items"])


def _time(candidates: Sequence[_Candidate], rng: random.Random, end: float) -> None:
    """Visit all entries in a new order each round, so that drift affects all of them.

    The first round only lets clocks and power settle; the first call of a visit warms code and address translations up.
    """
    swept = torch.ones(SWEEP_BYTES // 4, dtype=torch.float32, device=DEVICE)
    for round_number in range(1 + ROUNDS):
        for candidate in rng.sample(list(candidates), len(candidates)):
            if time.monotonic() > end:
                return
            device_queue.progressed()
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


def _summary(name: str, times: Sequence[float], calls: int) -> MeasuredTime:
    low, high = quantile_test(times, p=0.5).confidence_interval(0.95)
    return MeasuredTime(
        name=name,
        time_us=statistics.median(times),
        interval_us=(float(low), float(high)),
        calls=len(times),
        left_out=calls - len(times),
    )
