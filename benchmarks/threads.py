"""One design with OpenMP, std::thread and a pool of its own, in one interleaved run: ratios to OpenMP, with intervals.

`python -m benchmarks.threads`. It needs AMX, and says little on a busy machine.
"""

import math
from dataclasses import replace

from kernel_scientist import problems
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.evaluate.timing import conditions, schedule, statistics
from kernel_scientist.evaluate.timing.plan import TimedSource
from kernel_scientist.records import environment
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.pool import WorkerPool

environment.prepare()

THREADINGS = ("openmp", "std_thread", "pool", "one")
CONFIDENCE = 0.95


def main() -> None:
    """Time the kernels and print a line for each."""
    root, harness = environment.root(), Harness(stages=1, pairs=0, noise_runs=0, memory_mib=1024, blocks=12)
    text = (root / "tests/kernels/amx_gemm.py").read_text()
    sources = [
        TimedSource(name=name, source=text.replace('THREADING = "one"', f'THREADING = "{name}"')) for name in THREADINGS
    ]
    with WorkerPool(harness) as pool:
        evaluator = Evaluator(problems.load(root / "problems/fp8-blockwise-gemm"), "cpu", harness, pool)
        plan = replace(evaluator.plan(evaluator.profile.benchmarks, THREADINGS[0], None), confidence=CONFIDENCE)
        before = conditions.Load.now()
        samples = schedule.run(evaluator.driver, plan, sources)
        print(before.until_now())
    for name in THREADINGS:
        ratio = statistics.ratio(samples.table(name), samples.table(THREADINGS[0]))
        low, high = ratio.interval(CONFIDENCE)
        times = ", ".join(f"{case.name} {min(samples.times_us(name, case.name)):.1f}" for case in plan.cases)
        print(f"{name}: {math.exp(ratio.log):.3f}x OpenMP's speed [{low:.3f}, {high:.3f}]; least us: {times}")


if __name__ == "__main__":
    main()
