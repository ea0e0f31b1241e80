"""What our own code costs: `make bench`. Figures go to benchmarks/results/, with machine, load and spread.

- `--help`: wall time of the command line's answer.
- a fork of a worker, a build, a cached build.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.parts import RESULTS, machine
from kernel_scientist.records import environment

environment.prepare()

from kernel_scientist import problems  # noqa: E402
from kernel_scientist.evaluate.evaluator import Evaluator  # noqa: E402
from kernel_scientist.evaluate.timing.conditions import Load  # noqa: E402
from kernel_scientist.records.kernel import Kernel  # noqa: E402
from kernel_scientist.records.params import Harness  # noqa: E402
from kernel_scientist.workers.pool import WorkerPool  # noqa: E402


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": f"{folder}/cache"}
        found: dict[str, Any] = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
        before = Load.now()
        found["help_s"] = _spread(_help, 10)
        found |= _workers()
        found["machine"]["meanwhile"] = before.until_now()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "overhead.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _spread(work: Callable[[], object], times: int) -> dict[str, float]:
    """Return median, fastest and slowest of several runs, in seconds."""
    samples: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        samples.append(time.perf_counter() - start)
    return summary(samples)


def summary(samples: list[float]) -> dict[str, float]:
    """Return the spread of some figures."""
    rounded = {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}
    return {k: round(v, 4) for k, v in rounded.items()} | {"n": len(samples)}


def _help() -> None:
    subprocess.run([sys.executable, "-m", "kernel_scientist", "--help"], check=True, capture_output=True)


def _workers() -> dict[str, Any]:
    problem = problems.find("fp8-blockwise-gemm")
    with WorkerPool(Harness()) as shop:
        evaluator = Evaluator(problem, "cpu", shop.harness, shop)
        seed = problem.seeds("cpp")[-1].read_text()
        marked = (seed.replace("// @begin core", f"// variant {n}\n// @begin core") for n in range(8))
        varied = [Kernel(name="k", language="cpp", source=text) for text in marked]
        with shop.worker():
            pass  # the fork server's start does not count

        def fork() -> None:
            with shop.worker():
                pass

        fresh = iter(varied)
        out: dict[str, Any] = {"fork_worker_s": _spread(fork, 20)}
        out["build_s"] = _spread(lambda: evaluator.compile(next(fresh)), len(varied))
        out["cached_build_s"] = _spread(lambda: evaluator.compile(varied[0]), 10)
    return out


if __name__ == "__main__":
    main()
