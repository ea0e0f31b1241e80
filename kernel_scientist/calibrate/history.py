"""Calibrations as they are kept, one file per machine of the table, and what is said of those that have none."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from kernel_scientist.calibrate.device import Device
from kernel_scientist.calibrate.figures import Fit
from kernel_scientist.calibrate.measure import Measured
from kernel_scientist.gpu.model import constants
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError


class Calibration(Record):
    """How a machine's constants came about."""

    machine: str
    """Of the table."""
    device: Device
    date: str
    seconds: float
    fit: Fit
    measured: tuple[Measured, ...]
    dropped: dict[str, str]
    """Entries that are not in it, and why."""

    def constants(self) -> Constants:
        """Return what was fitted, labelled with device and date."""
        fitted = replace(Constants(), calibrated=f"{self.device.name}, {self.date}")
        values: dict[str, Any] = dict(self.fit.constants)
        return replace(fitted, **values)


def keep(calibration: Calibration) -> None:
    """Write a calibration where the model finds its constants."""
    constants.keep(calibration.machine, calibration.constants(), calibration.model_dump(mode="json"))


def last(machine: str) -> Calibration | None:
    """Return a machine's calibration, None where it was never calibrated. Raises SetupError for a file that is none."""
    constants.of(machine)
    file = constants.path(machine)
    if not file.exists():
        return None
    try:
        kept = json.loads(file.read_text())
        return Calibration.model_validate({k: v for k, v in kept.items() if k != "constants"})
    except ValidationError as error:
        words = f"{error.error_count()} fields are not as they should be, the first is {error.errors()[0]['loc']}"
        raise SetupError(f"{file} is no calibration: {words}; remove it or run `kernel-scientist calibrate`") from error


def table(machines: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per machine: the figures of its last calibration, or that it has none."""
    return [_row(machine, last(machine)) for machine in machines]


def _row(machine: str, found: Calibration | None) -> dict[str, Any]:
    if found is None:
        unknown = dict.fromkeys(("device", "rho", "least_rho", "error", "most_regret", "entries", "met"))
        return {"machine": machine, "calibrated": "uncalibrated", **unknown}
    return {
        "machine": machine,
        "calibrated": found.date,
        "device": f"{found.device.name}, driver {found.device.state.get('driver', 'unknown')}",
        "rho": found.fit.rho,
        "least_rho": found.fit.least_rho,
        "error": found.fit.error,
        "most_regret": found.fit.most_regret,
        "entries": f"{found.fit.fitted_on} + {found.fit.held_out}",
        "met": found.fit.met,
    }
