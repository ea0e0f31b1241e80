"""A calibration from end to end: see, time, fit, keep."""

import time
from collections.abc import Callable, Sequence

from kernel_scientist.calibrate import features, fit, history, measure, suite
from kernel_scientist.calibrate.device import Device
from kernel_scientist.calibrate.history import Calibration
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError

Say = Callable[[str], object]
LEAST = 20
"""Entries below which nothing is fitted: eleven constants on half of them."""


def calibrate(device: Device, gpu: Gpu, say: Say) -> Calibration:
    """Calibrate the model of the GPU at hand and keep what was found. Raises SetupError, DeviceBusyError."""
    start = time.monotonic()
    entries = suite.entries(gpu)
    say(f"{len(entries)} kernels for {device.name}: compiling and tracing")
    seen = features.features(entries, gpu)
    traced = [entry for entry in entries if entry.name in seen.loads]
    say(f"timing {len(traced)} of them")
    sitting = measure.measure(traced)
    points = _points(entries, seen, sitting)
    dropped = {**seen.missed, **sitting.dropped}
    if len(points) < LEAST:
        why = next(iter(dropped.values()), "no reason is known")
        raise SetupError(f"only {len(points)} of {len(entries)} kernels could be timed, the first of the others: {why}")
    say(f"fitting to {len(points)} times")
    calibration = Calibration(
        machine=gpu.name.lower(),
        device=sitting.device,
        date=time.strftime("%Y-%m-%d"),
        fit=fit.fit(gpu, points),
        measured=tuple(sitting.measured.values()),
        dropped=dropped,
        seconds=round(time.monotonic() - start, 1),
    )
    history.keep(calibration)
    return calibration


def _points(entries: Sequence[suite.Entry], seen: features.Features, sitting: measure.Sitting) -> list[fit.Point]:
    return [
        fit.Point(e.name, e.family, e.case, tuple(seen.loads[e.name]), sitting.measured[e.name].time_us)
        for e in entries
        if e.name in sitting.measured and e.name in seen.loads
    ]
