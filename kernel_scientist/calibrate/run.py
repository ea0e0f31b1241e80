"""A calibration from end to end: features, times, fit, file."""

import time
from collections.abc import Callable

from kernel_scientist.calibrate import features, fit, history, measure, suite
from kernel_scientist.calibrate.accuracy import Point
from kernel_scientist.calibrate.device import Device
from kernel_scientist.calibrate.history import Calibration
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.errors import SetupError

LEAST = 20
"""Least number of timed entries: eleven constants are fitted on half of them."""


def calibrate(device: Device, gpu: Gpu, report: Callable[[str], object]) -> Calibration:
    """Calibrate the model of this host's GPU and store the result. Raises SetupError, DeviceBusyError."""
    start = time.monotonic()
    entries = suite.entries(gpu)
    report(f"{len(entries)} kernels for {device.name}: compiling and tracing")
    found = features.features(entries, gpu)
    traced = [entry for entry in entries if entry.name in found.loads]
    report(f"timing {len(traced)} of them")
    measured = measure.measure(device, traced)
    times, dropped = measured.times, {**found.missed, **measured.dropped}
    points = [
        Point(e.name, e.family, e.case, tuple(found.loads[e.name]), times[e.name].time_us)
        for e in traced
        if e.name in times
    ]
    if len(points) < LEAST:
        reason = next(iter(dropped.values()), "no reason is known")
        raise SetupError(
            f"only {len(points)} of {len(entries)} kernels could be timed; the reason of the first other one: {reason}"
        )
    report(f"fitting to {len(points)} times")
    calibration = Calibration(
        machine=gpu.name.lower(),
        device=device,
        date=time.strftime("%Y-%m-%d"),
        fit=fit.fit(gpu, points),
        measured=tuple(times.values()),
        dropped=dropped,
        seconds=round(time.monotonic() - start, 1),
    )
    history.keep(calibration)
    return calibration
