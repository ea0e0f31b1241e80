"""Seconds from Enter to the result of commands about one kernel. Part of `python -m benchmarks.engine`."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kernel_scientist.records import environment

SEED = "problems/identity/seeds/cpp_blocked.py"
TIMES = 5


def measure() -> dict[str, Any]:
    """Return the median, fastest and slowest wall time of each command, in seconds; the file cache is warm."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        broken = folder / "broken.py"
        broken.write_text((environment.root() / SEED).read_text().replace("for (", "fooor (", 1))
        cache = folder / "cache"
        evaluate = ["evaluate", SEED, "--problem", "identity"]
        _run(evaluate, folder)  # builds, and warms the file cache
        optimize = ["optimize", "--set", "problem=identity", "--set", "search.generations=1"]
        return {
            "evaluate": _spread([_run(evaluate, folder) for _ in range(TIMES)]),
            "evaluate_first_of_the_day": _spread([_without_noise(evaluate, folder, cache) for _ in range(TIMES)]),
            "evaluate_that_does_not_compile": _spread(
                [_run(["evaluate", str(broken), "--problem", "identity"], folder, 1) for _ in range(TIMES)]
            ),
            "optimize_first_verdict": _spread([_first_line(optimize, folder) for _ in range(3)]),
        }


def _environment(folder: Path) -> dict[str, str]:
    own = {"PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": f"{folder}/cache"}
    own |= {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlruns/mlflow.db"}
    return {**{k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}, **own}


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "kernel_scientist", *arguments]


def _run(arguments: list[str], folder: Path, code: int = 0) -> float:
    start = time.perf_counter()
    done = subprocess.run(_command(arguments), env=_environment(folder), capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return time.perf_counter() - start


def _without_noise(arguments: list[str], folder: Path, cache: Path) -> float:
    shutil.rmtree(cache / "noise", ignore_errors=True)
    return _run(arguments, folder)


def _first_line(arguments: list[str], folder: Path) -> float:
    """Return the time to the first kernel's line; then stop the campaign."""
    start = time.perf_counter()
    with subprocess.Popen(_command(arguments), env=_environment(folder), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while (line := process.stderr.readline()) and not line.startswith("k0"):
            pass
        took_s = time.perf_counter() - start
        process.terminate()
        process.stderr.read()
    assert line, "the campaign ended without a kernel"
    return took_s


def _spread(samples: list[float]) -> dict[str, float]:
    values = {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}
    return {key: round(value, 2) for key, value in values.items()}
