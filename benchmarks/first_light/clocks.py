"""Steps of first light that are about clocks: device events, the device's lock, the sweep of the caches."""

import ctypes
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.first_light.here import Here
from benchmarks.first_light.outcome import Facts, StepError
from kernel_scientist.hardware import gpus
from kernel_scientist.records import environment
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.runtime import Runtime

RECORDS, PAIRS, VISITS = 1000, 200, 20
SWEEPS_MIB = (128, 256, 512, 1024)
SPANS_MS = (0.1, 1.0, 10.0)
IDLE_S, BUSY_S = (0.01, 0.1, 1.0), 0.5
SECOND = """
import sys
from kernel_scientist.records.errors import DeviceBusyError
from kernel_scientist.sandbox import device_lock
try:
    with device_lock.device(sys.argv[1], 0):
        sys.exit(1)
except DeviceBusyError:
    sys.exit(0)
"""


class Span(NamedTuple):
    """The time of one call, from an idle device to an idle device, in microseconds."""

    event_us: float
    host_us: float


class Events:
    """Two events on the default stream of a GPU's runtime, as a worker uses them."""

    def __init__(self, runtime: Runtime) -> None:
        self._call: dict[str, Any] = {
            name: getattr(runtime.handle, runtime.prefix + name)
            for name in ("EventCreate", "EventRecord", "EventElapsedTime", "DeviceSynchronize")
        }
        self.start, self.end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self.start, self.end):
            self._checked("EventCreate", ctypes.byref(event))

    def record(self, event: ctypes.c_void_p) -> None:
        """Record an event."""
        self._checked("EventRecord", event, None)

    def synchronize(self) -> None:
        """Wait until the device is idle. Raises StepError with the runtime's error."""
        self._checked("DeviceSynchronize")

    def elapsed_us(self) -> float:
        """Return the time between the events, once the device is idle."""
        ms = ctypes.c_float()
        self._checked("EventElapsedTime", ctypes.byref(ms), self.start, self.end)
        return ms.value * 1000

    def span(self, call: Callable[[], object], before: Callable[[], object] | None = None) -> Span:
        """Time a call from an idle device, or with `before` behind what that queues."""
        self.synchronize()
        if before is not None:
            before()
        begin = time.perf_counter()
        self.record(self.start)
        call()
        self.record(self.end)
        self.synchronize()
        return Span(self.elapsed_us(), (time.perf_counter() - begin) * 1e6)

    def _checked(self, name: str, *arguments: object) -> None:
        if error := self._call[name](*arguments):
            raise StepError(f"the runtime's {name} reports error {error}")


def events_agree(here: Here) -> Facts:
    """Device events and the host's clock agree; resolution and cost of an event; what idling does to the clock rate."""
    runtime = here.runtime()
    events, waiting = Events(runtime), _waiting(here, runtime)
    start = time.perf_counter_ns()
    for _ in range(RECORDS):
        events.record(events.start)
    yield {"record_ns": (time.perf_counter_ns() - start) // RECORDS}
    pairs = sorted(events.span(lambda: None) for _ in range(PAIRS))
    times = sorted({pair.event_us for pair in pairs})
    steps = [b - a for a, b in itertools.pairwise(times)]
    yield {"nothing_us": {"least": pairs[0].event_us, "median": pairs[PAIRS // 2].event_us}}
    yield {"host_beside_events_us": statistics.median(pair.host_us - pair.event_us for pair in pairs)}
    yield {"resolution_us": min(steps, default=0.0), "different_times": len(times)}
    for ms in SPANS_MS:
        spans = [events.span(lambda ms=ms: waiting(ms)) for _ in range(5)]
        event_us, host_us = (statistics.median(column) for column in zip(*spans, strict=True))
        yield {f"wait_{ms:g}_ms": {"event_us": event_us, "host_us": host_us}}
        if event_us > host_us:
            raise StepError(f"events show {event_us:.1f} us where the host saw {host_us:.1f} us")
    yield {"after_idle": _after_idle(events, waiting)}


def _waiting(here: Here, runtime: Runtime) -> Callable[[float], object]:
    """Return a function that keeps the device busy for about so many ms: on a GPU for a fixed number of its cycles."""
    if here.standin:
        nothing = ctypes.create_string_buffer(1)
        return lambda ms: runtime.handle.work(0, int(ms * 1000), nothing, 0, ctypes.c_size_t(1))
    import torch

    sleep: Callable[[int], None] = torch.cuda._sleep  # pyright: ignore[reportPrivateUsage]
    sleep(1)
    return lambda ms: sleep(int(ms * 1.7e6))  # cycles, at some 1.7 GHz


def _after_idle(events: Events, waiting: Callable[[float], object]) -> dict[str, float]:
    """Return the time of the same 1 ms of cycles, in microseconds, after work and after idling: how clocks ramp."""
    found: dict[str, float] = {}
    for idle_s in (0.0, *IDLE_S):
        end = time.monotonic() + BUSY_S
        while time.monotonic() < end:
            events.span(lambda: waiting(1))
        time.sleep(idle_s)
        found[f"{idle_s:g} s"] = events.span(lambda: waiting(1)).event_us
    return found


def lock_excludes(here: Here) -> Facts:
    """A second process does not get the device's lock, and gets it afterwards."""
    name = here.lock()
    yield {"lock": name}
    command = [sys.executable, "-c", SECOND, name]
    with device_lock.device(name, 5):
        if subprocess.run(command, cwd=environment.root(), check=False).returncode != 0:
            raise StepError("two processes hold the lock at once")
    if subprocess.run(command, cwd=environment.root(), check=False).returncode != 1:
        raise StepError("the lock is held although nobody holds it")


def sweep_evicts(here: Here) -> Facts:
    """The sweep makes a call cold; from which size on a call gets no colder."""
    import torch

    runtime = here.runtime()
    events, waiting, cached, l2 = Events(runtime), _waiting(here, runtime), 1 << 16, 0
    if not here.standin:
        l2 = int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))
        known = gpus.of_device(here.device)
        last = max(l2, known.last_bytes if known else 0)
        cached = max(last, 8 << 20) // 4
        yield {"l2_bytes": l2, "last_level_bytes": last}
    data = torch.ones(cached // 4, dtype=torch.float32, device=here.device)
    out = torch.empty_like(data)

    def call() -> None:
        torch.mul(data, 2, out=out)

    call()
    found: dict[str, dict[str, float]] = {}
    for mib in SWEEPS_MIB:
        sweep = here.sweep(runtime, mib)
        cold, warm, swept = list[float](), list[float](), list[float]()
        for _ in range(VISITS):
            swept.append(events.span(sweep).event_us)
            cold.append(events.span(call, sweep).event_us)  # both behind other work: the launch is not timed
            warm.append(events.span(call, lambda: waiting(0.1)).event_us)
        times = {"swept_us": swept, "cold_us": cold, "warm_us": warm}
        found[f"{mib} MiB"] = {name: statistics.median(values) for name, values in times.items()}
        yield {f"sweep of {mib} MiB": found[f"{mib} MiB"]}
    ours = found[f"{SWEEPS_MIB[0]} MiB"] if here.standin else found["512 MiB"]
    yield {
        "read_bytes": cached,
        "note": f"a call takes {ours['cold_us']:.1f} us after a sweep, {ours['warm_us']:.1f} on cached data",
    }
    if not here.standin and ours["cold_us"] <= ours["warm_us"]:
        raise StepError("a call after the sweep is not slower than one on cached data: the sweep evicts nothing")
