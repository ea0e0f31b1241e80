"""Which of many problems can be used: each is loaded and admitted in a process of its own, within a time limit."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kernel_scientist import problems
from kernel_scientist.hardware import cpu
from kernel_scientist.problems import admission
from kernel_scientist.records.errors import SetupError

Row = dict[str, Any]


def admitted(paths: Sequence[str], limit_s: float, compat: str, done: Callable[[Row], None]) -> dict[str, Any]:
    """Return, for the problems at and below some paths, which are admissible and why the others are not.

    done: called with each row. Raises SetupError for a path without problems.
    """
    places: list[Path] = []
    for path in paths:
        place = Path(path) if Path(path).exists() else problems.folder() / path
        found = problems.within(place.resolve()) if place.exists() else []
        if not found:
            raise SetupError(f"{path}: there is no task folder and no KernelBench file at or below it")
        places += found
    if len(places) == 1:  # in this process: `_judged` starts one for each of several
        start = time.monotonic()
        row = _row(places[0], admission.fault(places[0], compat), time.monotonic() - start)
        done(row)
        return _summary([row])

    def judge(place: Path) -> Row:
        row = _judged(place, limit_s, compat)
        done(row)
        return row

    with ThreadPoolExecutor(cpu.cores()) as pool:
        return _summary(list(pool.map(judge, places)))


def _judged(place: Path, limit_s: float, compat: str) -> Row:
    start = time.monotonic()
    command = [sys.executable, "-m", "kernel_scientist", "problems", "admit", str(place), "--compat", compat, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return _row(place, f"it was not admitted within {limit_s:g} s", time.monotonic() - start)
    try:
        reason = str(json.loads(done.stdout)["problems"][0]["reason"])
    except (ValueError, LookupError):
        lines = done.stderr.strip().splitlines() or [f"its process ended with status {done.returncode}"]
        reason = lines[-1][:500]
    return _row(place, reason, time.monotonic() - start)


def _row(place: Path, reason: str, seconds: float) -> Row:
    name = f"{place.parent.name}/{place.stem}"
    return {"problem": name, "admissible": not reason, "reason": reason, "seconds": round(seconds, 1)}


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    return {"admissible": sum(row["admissible"] for row in rows), "of": len(rows), "problems": list(rows)}
