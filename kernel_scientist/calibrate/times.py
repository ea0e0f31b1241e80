"""The file of measured times: a line of JSON per entry, written when the entry is measured, so that a run that is ended
early has lost nothing. A fit can be made from it later, on a machine without a GPU."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from kernel_scientist.records.base import Record, read_text
from kernel_scientist.records.errors import SetupError


class HostGpu(Record):
    """One GPU of a host."""

    name: str
    """As the driver reports it."""
    platform: str
    """`cuda` or `rocm`."""
    platform_version: str
    torch: str
    triton: str
    state: dict[str, str]
    """Driver, clocks, temperature, power at the beginning (`hardware.gpu.state`)."""


class MeasuredTime(Record):
    """The time of one entry."""

    name: str
    time_us: float
    """Median."""
    interval_us: tuple[float, float]
    """95 % interval of the median, by order statistics."""
    calls: int
    left_out: int
    """Calls left out: events unusable (on ROCm they may be zero or negative), or the GPU had to wait."""


class Dropped(Record):
    """An entry without a time."""

    name: str
    reason: str


class Heading(Record):
    """The first line: what the times were measured on."""

    machine: str
    """Name in the table of GPUs."""
    device: HostGpu
    date: str


@dataclass(frozen=True)
class Times:
    """The content of a file."""

    heading: Heading
    measured: dict[str, MeasuredTime]
    dropped: dict[str, str]
    """Reasons by entry."""


@dataclass(frozen=True)
class TimesFile:
    """A file that is being written."""

    file: IO[str]

    def add(self, line: MeasuredTime | Dropped | Heading) -> None:
        """Write a line; it is in the file when this returns."""
        self.file.write(line.model_dump_json() + "\n")
        self.file.flush()


@contextmanager
def writing(path: Path, machine: str, device: HostGpu) -> Generator[TimesFile]:
    """Begin a file; one of that name is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        kept = TimesFile(file)
        kept.add(Heading(machine=machine.lower(), device=device, date=time.strftime("%Y-%m-%d")))
        yield kept


def read(path: Path) -> Times:
    """Return the content of a file; a last line without its end is left out. Raises SetupError for another content."""
    text = read_text(path, "the times in ")
    try:
        first, *rest = text.splitlines(keepends=True)
        times = Times(Heading.model_validate_json(first), {}, {})
        for line in (line for line in rest if line.endswith("\n")):
            if '"reason"' in line:
                dropped = Dropped.model_validate_json(line)
                times.dropped[dropped.name] = dropped.reason
            else:
                measured = MeasuredTime.model_validate_json(line)
                times.measured[measured.name] = measured
    except ValueError as error:
        words = f"{error.error_count()} invalid fields" if isinstance(error, ValidationError) else str(error)
        raise SetupError(f"{path} is no file of times that `kernel-scientist calibrate` wrote: {words}") from error
    return times
