"""What the benchmarks share: bounded processes, the answer in their output, the machine, the folder of results."""

import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment

RESULTS = Path(__file__).parent / "results"


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
    with tempfile.TemporaryFile("w+") as log:  # no pipe: what outlives the command would hold its other end
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
            process.wait()
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


def word(name: str) -> str:
    """Return a device's name as part of a folder's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
