"""The performance model's constants per machine, and by what they were calibrated.

Three kinds, in order of precedence: measured here (`kernel-scientist calibrate` on a device), published (fitted to
times that others measured, `kernel-scientist calibrate --published`), and the datasheet's peaks with usual shares: HBM
copies reach 0.8 to 0.85 of the peak, MI300X's Infinity Cache 11.9 of 17.2 TB/s, memory latency is 600 to 800 ns.
Pipelines run at their peaks: programs lose time by what they do one after the other, which the model adds up.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError

FOLDER = "data/calibration"
PUBLISHED = Path(__file__).resolve().parents[3] / "data" / "published" / "calibration.json"
"""Constants fitted to published times, with their provenance, and the machines that they hold for."""
Kind = Literal["measured here", "published", "datasheet"]


@dataclass(frozen=True)
class Constants:
    """Shares of peak rates, latencies, and the exponent of the smooth maximum."""

    hbm: float = 0.82
    cache: float = 0.7
    l2: float = 0.6
    l1: float = 1.0
    lds: float = 1.0
    matrix: float = 1.0
    vector: float = 1.0
    latency_ns: float = 300.0
    """Latency of a load that hits L2."""
    memory_ns: float = 400.0
    """What a load from main memory takes longer."""
    start_us: float = 2.0
    """A kernel's start and end on the device: part of its time in a profiler."""
    launch_us: float = 5.0
    """The launch: not part of it."""
    next_us: float = 2.0
    norm: float = 2.0
    kind: Kind = "datasheet"
    calibrated: str = ""
    """What they were calibrated by: device and date, or data set and date; empty for the datasheet's."""


def path(machine: str) -> Path:
    """Return the file of a machine's calibration."""
    return environment.root() / FOLDER / f"{machine.lower()}.json"


def of(machine: str) -> Constants:
    """Return a machine's constants, calibrated if possible. Raises SetupError for an unreadable file."""
    file = path(machine)
    if not file.exists():
        return _published(machine)
    try:
        return Constants(**json.loads(file.read_text())["constants"])
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{file} is no calibration: {error}; remove it or run `kernel-scientist calibrate`") from error


def held_out(machine: str) -> str:
    """Return the error on times that a machine's constants were not fitted to, in words; empty if none is known."""
    file = path(machine)
    if file.exists():
        error = json.loads(file.read_text()).get("fit", {}).get("error")
        return f"{100 * error:.1f} % in the median" if error is not None else ""
    if not PUBLISHED.exists():
        return ""
    found = json.loads(PUBLISHED.read_text())
    if machine.lower() not in found["machines"]:
        return ""
    half = found["held_out"]
    return f"{100 * half['error']:.1f} % in the median and {100 * half['worst']:.0f} % at worst"


def _published(machine: str) -> Constants:
    if not PUBLISHED.exists():
        return Constants()
    found = json.loads(PUBLISHED.read_text())
    return Constants(**found["constants"]) if machine.lower() in found["machines"] else Constants()


def keep(machine: str, constants: Constants, provenance: dict[str, object]) -> Path:
    """Store a calibration with its provenance."""
    file = path(machine)
    environment.keep(file, json.dumps({"constants": asdict(constants), **provenance}, indent=1) + "\n")
    return file
