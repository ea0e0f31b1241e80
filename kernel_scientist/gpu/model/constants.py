"""The performance model's constants per machine: achievable share of each peak, latencies, and where they come from.

Uncalibrated constants follow published rates: on MI300X HBM copies reach 0.8 to 0.85 of peak, the best GEMMs 0.6 to
0.75 of the matrix peak; memory latency is 600 to 800 ns.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

FOLDER = "data/calibration"


@dataclass(frozen=True)
class Constants:
    """Shares of peak rates, latencies, and the exponent of the smooth maximum."""

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
    """Device and date of the calibration; empty: not calibrated."""


def path(machine: str) -> Path:
    """Return the file of a machine's calibration."""
    return environment.root() / FOLDER / f"{machine.lower()}.json"


def of(machine: str) -> Constants:
    """Return a machine's constants, calibrated if possible. Raises SetupError for an unreadable file."""
    file = path(machine)
    if not file.exists():
        return Constants()
    try:
        return Constants(**json.loads(file.read_text())["constants"])
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{file} is no calibration: {error}; remove it or run `kernel-scientist calibrate`") from error


def keep(machine: str, constants: Constants, provenance: dict[str, object]) -> Path:
    """Store a calibration with its provenance."""
    file = path(machine)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"constants": asdict(constants), **provenance}, indent=1) + "\n")
    return file
