"""What our own code costs: `make bench`. Figures go to benchmarks/results/, with machine, load and spread.

- `--help`: wall time of the command line's answer.
- a fork of a worker, a build, a cached build.
- seconds from Enter to the result of commands about one kernel; `python -m benchmarks.engine start` measures them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.parts import RESULTS, measured, seconds, spread, write
from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool

SEED = "problems/identity/seeds/cpp_blocked.py"
TIMES = 5


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder, measured() as found:
        os.environ |= {"PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": f"{folder}/cache"}
        found |= {name: spread(samples) for name, samples in _samples().items()}
    write(RESULTS / "overhead.json", found)


def _samples() -> dict[str, list[float]]:
    """Return wall times in seconds."""
    call = [sys.executable, "-m", "kernel_scientist", "--help"]
    found = {"help_s": [seconds(lambda: subprocess.run(call, check=True, capture_output=True)) for _ in range(10)]}
    problem = problems.find("fp8-blockwise-gemm")
    with WorkerPool(Harness()) as shop:
        evaluator = Evaluator(problem, "cpu", shop.harness, shop)
        seed = problem.seeds("cpp")[-1].read_text()
        marked = (seed.replace("// @begin core", f"// variant {n}\n// @begin core") for n in range(8))
        varied = [Kernel(name="k", language="cpp", source=text) for text in marked]

        def fork() -> None:
            with shop.worker():
                pass

        fork()  # the fork server's start does not count
        found["fork_worker_s"] = [seconds(fork) for _ in range(20)]
        found["build_s"] = [seconds(lambda one=one: evaluator.compile(one)) for one in varied]
        found["cached_build_s"] = [seconds(lambda: evaluator.compile(varied[0])) for _ in range(10)]
    return found


def commands() -> dict[str, Any]:
    """Return the median, fastest and slowest wall time of each command, in seconds; the file cache is warm."""
    with tempfile.TemporaryDirectory() as folder:
        cache, broken = Path(folder, "cache"), Path(folder, "broken.py")
        broken.write_text((environment.root() / SEED).read_text().replace("for (", "fooor (", 1))
        own = {**os.environ, "PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": str(cache)}
        own["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlruns/mlflow.db"
        own.pop("PREFECT_API_URL", None)

        def first_of_the_day() -> float:
            shutil.rmtree(cache / "noise", ignore_errors=True)
            return _evaluation_s(SEED, own)

        _evaluation_s(SEED, own)  # builds, and warms the file cache
        samples = {
            "evaluate": [_evaluation_s(SEED, own) for _ in range(TIMES)],
            "evaluate_first_of_the_day": [first_of_the_day() for _ in range(TIMES)],
            "evaluate_that_does_not_compile": [_evaluation_s(str(broken), own, 1) for _ in range(TIMES)],
            "optimize_first_verdict": [_first_line_s(own) for _ in range(3)],
        }
    return {command: spread(each, 2) for command, each in samples.items()}


def _evaluation_s(file: str, own: dict[str, str], code: int = 0) -> float:
    command = [sys.executable, "-m", "kernel_scientist", "evaluate", file, "--problem", "identity"]
    start = time.perf_counter()
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return time.perf_counter() - start


def _first_line_s(own: dict[str, str]) -> float:
    """Return the time to the first kernel's line; then stop the campaign."""
    changes = ("--set", "problem=identity", "--set", "search.generations=1")
    command = [sys.executable, "-m", "kernel_scientist", "optimize", *changes]
    start = time.perf_counter()
    with subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while (line := process.stderr.readline()) and not line.startswith("k0"):
            pass
        took_s = time.perf_counter() - start
        process.terminate()
        process.stderr.read()
    assert line, "the campaign ended without a kernel"
    return took_s


if __name__ == "__main__":
    main()
