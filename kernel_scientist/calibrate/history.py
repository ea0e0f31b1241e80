"""Stored calibrations: one file per machine of the table."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from kernel_scientist.calibrate.accuracy import Fit
from kernel_scientist.calibrate.device import Device
from kernel_scientist.calibrate.measure import Measured
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError


class Calibration(Record):
    """The fit of a machine's constants and the measurement behind it."""

    machine: str
    """Name in the table of GPUs."""
    device: Device
    date: str
    seconds: float
    fit: Fit
    measured: tuple[Measured, ...]
    dropped: dict[str, str]
    """Entries that were left out, with the reason."""


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


def table(machines: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per machine: the figures of its last calibration, or that it has none."""
    return [_row(machine, last(machine)) for machine in machines]


def _row(machine: str, found: Calibration | None) -> dict[str, Any]:
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
