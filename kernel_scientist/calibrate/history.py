"""Calibrations: made from end to end (features, times, fit), and stored in one file per machine of the table."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernel_scientist.calibrate import features, fit, measure, suite, times
from kernel_scientist.calibrate.fit import Fit, FitPoint
from kernel_scientist.calibrate.times import HostGpu, MeasuredTime, Times
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError

LEAST = 20
"""Least number of timed entries: twelve constants are fitted on half of them."""


class Calibration(Record):
    """The fit of a machine's constants and the measurement behind it."""

    machine: str
    """Name in the table of GPUs."""
    device: HostGpu
    date: str
    seconds: float
    fit: Fit
    measured: tuple[MeasuredTime, ...]
    dropped: dict[str, str]
    """Entries that were left out, with the reason."""


def calibrate(
    device: HostGpu,
    gpu: Gpu,
    report: Callable[[str], object],
    seconds: float = measure.SECONDS,
    file: Path | None = None,
) -> Calibration:
    """Calibrate the model of this host's GPU and store the result; its times are in `file` as soon as they are known.

    Raises SetupError, DeviceBusyError.
    """
    start, entries = time.monotonic(), suite.entries(gpu)
    path = file or constants.path(gpu.name).with_suffix(".jsonl")
    report(f"timing {len(entries)} kernels on {device.name} for at most {seconds:g} s; times are in {path}")
    with times.writing(path, gpu.name, device) as kept:
        measure.measure(device, entries, seconds, kept.add)
    return fitted(times.read(path), report, start)


def fitted(found: Times, report: Callable[[str], object], start: float | None = None) -> Calibration:
    """Fit the model to times, without a GPU, and store the result. Raises SetupError."""
    start = time.monotonic() if start is None else start
    gpu = gpus.named(found.heading.machine)
    entries = suite.entries(gpu)
    missing = features.missing(entries, gpu)
    report(f"{len(found.measured)} times; {missing} kernels to compile and count")
    counted = features.features(entries, gpu)
    dropped = counted.missed | found.dropped
    points = [
        FitPoint(e.name, e.family, e.case, tuple(counted.loads[e.name]), found.measured[e.name].time_us)
        for e in entries
        if e.name in counted.loads and e.name in found.measured
    ]
    if len(points) < LEAST:
        reason = next(iter(dropped.values()), "no reason is known")
        raise SetupError(
            f"only {len(points)} of {len(entries)} kernels could be timed; the reason of the first other one: {reason}"
        )
    report(f"fitting to {len(points)} times")
    calibration = Calibration(
        machine=found.heading.machine,
        device=found.heading.device,
        date=found.heading.date,
        fit=fit.fit(gpu, points),
        measured=tuple(found.measured.values()),
        dropped=dropped,
        seconds=round(time.monotonic() - start, 1),
    )
    keep(calibration)
    return calibration


def keep(calibration: Calibration) -> None:
    """Write a calibration to the file in which the model finds its constants."""
    values: dict[str, Any] = dict(calibration.fit.constants)
    named = f"{calibration.device.name}, {calibration.date}"
    fitted = replace(Constants(), **values, kind="measured here", calibrated=named)
    constants.keep(calibration.machine, fitted, calibration.model_dump(mode="json"))


def last(machine: str) -> Calibration | None:
    """Return a machine's calibration, None if there is none. Raises SetupError for a file of another content."""
    constants.of(machine)
    file = constants.path(machine)
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text())
        return Calibration.model_validate({k: v for k, v in content.items() if k != "constants"})
    except ValidationError as error:
        found = f"{error.error_count()} invalid fields, the first is {error.errors()[0]['loc']}"
        raise SetupError(f"{file} is no calibration: {found}; remove it or run `kernel-scientist calibrate`") from error


def row(machine: str) -> dict[str, Any]:
    """Return the figures of a machine's last calibration, or that it has none."""
    found = last(machine)
    if found is None:
        unknown = dict.fromkeys(("device", "rho", "least_rho", "error", "most_regret", "entries", "met"))
        known = constants.of(machine)
        return {"machine": machine, "kind": known.kind, "calibrated": known.calibrated, **unknown}
    return {
        "machine": machine,
        "kind": "measured here",
        "calibrated": found.date,
        "device": f"{found.device.name}, driver {found.device.state.get('driver', 'unknown')}",
        **{name: getattr(found.fit, name) for name in ("rho", "least_rho", "error", "most_regret")},
        "entries": f"{found.fit.fitted_on} + {found.fit.held_out}",
        "met": found.fit.met,
    }
