"""The performance model's constants: part of peak that is reached, latencies. Per machine, with their provenance.

Uncalibrated ones are what is published of achieved rates: HBM copies reach 0.8 to 0.85 of peak on MI300X, matrix units
0.6 to 0.75 in the best GEMMs, memory answers in 600 to 800 ns.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

FOLDER = "data/calibration"


@dataclass(frozen=True)
class Constants:
    """Fractions of peak rates, times, and how sharply the slowest resource dominates."""

    hbm: float = 0.82
    cache: float = 0.6
    l2: float = 0.6
    l1: float = 0.8
    lds: float = 0.8
    matrix: float = 0.7
    vector: float = 0.8
    latency_ns: float = 700.0
    launch_us: float = 5.0
    next_us: float = 2.0
    norm: float = 4.0
    calibrated: str = ""
    """Device and date; empty: these are not calibrated."""


def path(machine: str) -> Path:
    """Return where a machine's calibration is kept."""
    return environment.root() / FOLDER / f"{machine.lower()}.json"


def of(machine: str) -> Constants:
    """Return a machine's constants; the uncalibrated ones where it was never calibrated. Raises SetupError."""
    file = path(machine)
    if not file.exists():
        return Constants()
    try:
        return Constants(**json.loads(file.read_text())["constants"])
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{file} is no calibration: {error}; remove it or run `kernel-scientist calibrate`") from error


def keep(machine: str, constants: Constants, provenance: dict[str, object]) -> Path:
    """Write a calibration down, with how it came about."""
    file = path(machine)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"constants": asdict(constants), **provenance}, indent=1) + "\n")
    return file
