"""Times of the suite on the GPU at hand, CUDA or ROCm alike: right first, then cold caches, many rounds, random order.

These kernels are our own: they run in this process, and no sandbox is between them and the clock. A call is timed by
events on the device, behind a sweep of its caches that was queued before it, so that the time in which Python starts a
kernel passes while the GPU is still sweeping; calls that the GPU was too quick for are left out.
"""

import importlib.util
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import binom

from kernel_scientist.calibrate import device, families
from kernel_scientist.calibrate.suite import Entry
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import device_lock, protocol

WHERE = "cuda"
"""torch's name of the device, on ROCm as well."""
SWEEP_BYTES = 1 << 30
"""Read between calls: 4 times MI300X's Infinity Cache, 20 times H100's L2; it takes 0.2 to 0.4 ms. Read, not written:
what is dirty would be written back at the call's expense."""
ROUNDS, CALLS, LEAST = 6, 6, 12
"""Visits of every entry, timed calls of each, and how many good ones an entry needs."""
WARMUP_S = 1.5
"""Of work before anything is timed: clocks and power must settle."""
CHECK_S = 150.0
"""For building and checking, in random order; entries that come later are left out."""
LOCK_S = 600.0


class Measured(Record):
    """The time of one entry."""

    name: str
    time_us: float
    """Median."""
    interval_us: tuple[float, float]
    """Of the median, 95 %."""
    calls: int
    left_out: int
    """Calls whose events say nothing (ROCm's may be zero or less), or that the GPU had to wait for."""


@dataclass(frozen=True)
class Sitting:
    """What was timed on a device, and what was not, with the reason."""

    device: device.Device
    measured: dict[str, Measured]
    dropped: dict[str, str]


@dataclass
class _Bench:
    """An entry that is built and right, on the device."""

    entry: Entry
    kernel: Callable[[Any], Any]
    data: tuple[Any, ...]
    times_us: list[float] = field(default_factory=list[float])
    left_out: int = 0


def measure(entries: Sequence[Entry], seed: int = 0) -> Sitting:
    """Check every entry against torch, then time it. Raises SetupError where there is no GPU, DeviceBusyError."""
    found = device.present()
    if found is None:
        raise SetupError("torch finds no GPU here to measure on")
    with device_lock.device(found.lock, LOCK_S), tempfile.TemporaryDirectory() as folder:
        dropped: dict[str, str] = {}
        rng = random.Random(seed)
        benches = _right(rng.sample(list(entries), len(entries)), Path(folder), dropped)
        _warm_up(benches)
        _time(benches, rng)
    measured = {bench.entry.name: _summary(bench) for bench in benches if len(bench.times_us) >= LEAST}
    few = {b.entry.name: f"only {len(b.times_us)} calls could be timed" for b in benches}
    return Sitting(found, measured, dropped | {name: why for name, why in few.items() if name not in measured})


def drawn(header: protocol.Header, where: str, seed: int) -> tuple[Any, ...]:
    """Return inputs that a header describes, normally distributed. The last one, the output, is all NaN."""
    import torch

    generator = torch.Generator(where).manual_seed(seed)
    tensors: list[Any] = []
    for item in header["items"]:
        dtype = getattr(torch, item["dtype"])
        values = torch.empty(item["shape"], dtype=torch.bfloat16, device=where).normal_(generator=generator)
        tensors.append(values.to(dtype))
    return (*tensors[:-1], tensors[-1].fill_(float("nan")))


def _right(entries: Sequence[Entry], folder: Path, dropped: dict[str, str]) -> list[_Bench]:
    """Build every entry and compare its output; inputs are shared among the entries of a case."""
    benches: list[_Bench] = []
    inputs: dict[tuple[str, str], tuple[Any, ...]] = {}
    kernels: dict[str, Callable[[Any], Any]] = {}
    start = time.monotonic()
    for entry in entries:
        if time.monotonic() - start > CHECK_S:
            dropped[entry.name] = f"not reached: building and checking took {CHECK_S:g} s"
            continue
        place = (entry.family, entry.case)
        try:
            kernel = kernels[entry.source] = kernels.get(entry.source) or loaded(entry.source, folder)
            data = inputs[place] = inputs.get(place) or drawn(entry.inputs, WHERE, len(inputs))
            off = _deviation(entry, kernel, data)
        except Exception as error:  # whatever a compiler or a driver raises: it is this entry's, and it is written down
            dropped[entry.name] = f"{type(error).__name__}: {error}"[:400]
            continue
        if off <= families.tolerance(entry.family):
            benches.append(_Bench(entry, kernel, data))
        else:
            dropped[entry.name] = f"wrong: an element is off by {off:.3g} of its size"
    return benches


def loaded(source: str, folder: Path) -> Callable[[Any], Any]:
    """Import a kernel from a file of its own: Triton reads its source back."""
    path = folder / f"suite_{len(list(folder.glob('*.py')))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.custom_kernel


def _deviation(entry: Entry, kernel: Callable[[Any], Any], data: tuple[Any, ...]) -> float:
    import torch

    data[-1].fill_(float("nan"))
    output = kernel(data)
    torch.cuda.synchronize()
    off = families.deviation(entry.family, data, output)
    torch.cuda.empty_cache()
    return off


def _warm_up(benches: Sequence[_Bench]) -> None:
    import torch

    end = time.monotonic() + WARMUP_S
    while benches and time.monotonic() < end:
        for bench in benches:
            bench.kernel(bench.data)
            torch.cuda.synchronize()


def _time(benches: Sequence[_Bench], rng: random.Random) -> None:
    """Visit all entries in a new order each round, so that drift falls on all of them."""
    import torch

    trash = torch.ones(SWEEP_BYTES // 4, dtype=torch.float32, device=WHERE)
    for _ in range(ROUNDS):
        for bench in rng.sample(list(benches), len(benches)):
            for number in range(1 + CALLS):
                time_us = _call(bench, trash)
                if number and time_us is not None:  # the first call of a visit warms code and translations up
                    bench.times_us.append(time_us)
                elif number:
                    bench.left_out += 1


def _call(bench: _Bench, trash: Any) -> float | None:
    """Return what one call takes in us; None where the events cannot tell."""
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    trash.sum()
    start.record()
    bench.kernel(bench.data)
    end.record()
    waited = start.query()  # the sweep is over already: the GPU stood idle until the kernel was started
    torch.cuda.synchronize()
    time_us = start.elapsed_time(end) * 1000
    return time_us if time_us > 0 and not waited else None


def _summary(bench: _Bench) -> Measured:
    return Measured(
        name=bench.entry.name,
        time_us=statistics.median(bench.times_us),
        interval_us=interval(bench.times_us),
        calls=len(bench.times_us),
        left_out=bench.left_out,
    )


def interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a median by order statistics: no distribution is assumed."""
    ordered = sorted(values)
    low = int(binom.ppf((1 - confidence) / 2, len(ordered), 0.5))
    low = max(0, low - 1)
    return ordered[low], ordered[len(ordered) - 1 - low]
