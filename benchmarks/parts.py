"""What the benchmarks share: bounded processes, the answer in their output, seconds, the machine, files of results.

A program imports this module first: it sets the process defaults, before packages that read them are imported.
"""

import json
import os
import platform
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment

environment.prepare()

RESULTS = Path(__file__).parent / "results"
KILLED_S = 5
"""Seconds that a killed process has to end."""


@dataclass(frozen=True)
class Done:
    """A process that has ended, or was ended."""

    status: int | None
    """None: it took too long."""
    seconds: float
    output: str


def bounded(command: Sequence[str], seconds: float, **extra: str) -> Done:
    """Run a command for at most so long; it and what it started are ended then."""
    start = time.monotonic()
    with tempfile.TemporaryFile(
        "w+", errors="replace"
    ) as log:  # no pipe: what outlives the command would hold its other end
        process = subprocess.Popen(
            list(command),
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=environment.root(),
            env={**os.environ, **extra},
        )
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # one that hangs in a driver does not end
                process.wait(KILLED_S)
        log.seek(0)
        return Done(status, round(time.monotonic() - start, 1), log.read())


def answer(output: str) -> dict[str, Any]:
    """Return the JSON that a program's words end with; nothing where there is none."""
    for place in [0, *(match.start() + 1 for match in re.finditer(r"\n\{", output))]:
        try:
            found, _ = json.JSONDecoder().raw_decode(output[place:])
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


def machine() -> dict[str, Any]:
    """Return what a figure depends on."""
    load = round(os.getloadavg()[0], 2)
    return {"cpu": cpu.model(), "cores": cpu.cores(), "system": platform.platform(), "load_before": load}


@contextmanager
def measured() -> Generator[dict[str, Any]]:
    """Yield a table for figures. It has the machine and the date; the load meanwhile is added at the end."""
    from kernel_scientist.evaluation.timing.conditions import Load  # it imports torch, as first light must not

    found: dict[str, Any] = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    before = Load.now()
    yield found
    found["machine"]["meanwhile"] = before.until_now()


def write(file: Path, figures: dict[str, Any]) -> None:
    """Write figures to a file, and print them."""
    text = json.dumps(figures, indent=1)
    file.write_text(text + "\n")
    print(text)


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spread(samples: Sequence[float], digits: int = 4) -> dict[str, float]:
    """Return median, least and greatest of some figures, rounded, and how many there are."""
    found = {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}
    return {name: round(value, digits) for name, value in found.items()} | {"n": len(samples)}


def word(name: str) -> str:
    """Return a device's name as part of a folder's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
