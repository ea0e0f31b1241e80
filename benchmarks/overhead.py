"""What our own code costs: `make bench`. Figures go to benchmarks/results/, with machine, load and spread.

- `--help`: wall time of the command line's answer.
- a fork of a worker, a build, a cached build.
"""

import os
import subprocess
import sys
import tempfile

from benchmarks.parts import RESULTS, measured, seconds, spread, write
from kernel_scientist import problems
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.pool import WorkerPool


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


if __name__ == "__main__":
    main()
