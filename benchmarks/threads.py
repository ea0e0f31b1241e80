"""One design with OpenMP, std::thread and a pool of its own, in one interleaved run: ratios to OpenMP, with intervals.

`python -m benchmarks.threads`: a GEMM for any processor, and one on AMX where the processor has it, on the problem's
timed cases and on cases with 27 times the work. A std::thread is started in every call, which costs 80 to 130 us: part
of the design, and some 5 % of a short call. Only the long cases say whether the harness treats the libraries alike.
On a busy machine the intervals are wide, and libraries differ in what they lose when other processes take a core.
"""

import math
from dataclasses import replace

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing import conditions, schedule, statistics
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware import cpu
from kernel_scientist.hardware.addresses import CPU
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.worker_pool import WorkerPool

environment.prepare()

THREADINGS = ("openmp", "std_thread", "pool", "one")
KERNELS = {"threaded_gemm": frozenset[str](), "amx_gemm": frozenset({"amx_bf16", "avx512vbmi", "avx512_bf16"})}
"""Kernels in tests/kernels, and what they need of a processor."""
CONFIDENCE = 0.95
LONGER = 3
"""Factor on m, n and k of the long cases."""
WAIT_S = 300
"""How long to wait for the device while nothing moves, in seconds."""


def main() -> None:
    """Time the kernels that this machine can run."""
    problem = problems.load(environment.root() / "problems/fp8-blockwise-gemm")
    harness = Harness(stages=3, pairs=0, noise_runs=0, memory_mib=1024, blocks=8)
    with WorkerPool(harness) as pool:
        evaluator = Evaluator(problem, "cpu", harness, pool)
        for kernel, needed in KERNELS.items():
            if needed <= cpu.features():
                short = evaluator.profile.benchmarks
                _compare(evaluator, kernel, short)
                _compare(evaluator, kernel, tuple(_longer(case) for case in short))


def _longer(case: Case) -> Case:
    """Return the case with `LONGER` times its sizes."""
    return case.model_copy(update={"sizes": {size: case.whole(size) * LONGER for size in case.sizes}})


def _compare(evaluator: Evaluator, kernel: str, cases: tuple[Case, ...]) -> None:
    """Time a kernel with each kind of threads; print the load, and a line for each."""
    text = (environment.root() / f"tests/kernels/{kernel}.py").read_text()
    sources = [
        TimedSource(name=name, source=text.replace('THREADING = "one"', f'THREADING = "{name}"')) for name in THREADINGS
    ]
    plan = replace(evaluator.plan(cases, THREADINGS[0], None), confidence=CONFIDENCE)
    with device_lock.device(CPU.lock, WAIT_S, purpose=f"time {kernel} with several kinds of threads"):
        before = conditions.Load.now()
        samples = schedule.run(evaluator.driver, plan, sources)
    print(kernel, {**conditions.describe(evaluator.pool), **before.until_now()})
    for name in THREADINGS:
        ratio = statistics.ratio(samples.table(name), samples.table(THREADINGS[0]))
        low, high = ratio.interval(CONFIDENCE)
        times = ", ".join(f"{case.name} {min(samples.times_us(name, case.name)):.1f}" for case in plan.cases)
        print(f"{name}: {math.exp(ratio.log):.3f}x OpenMP's speed [{low:.3f}, {high:.3f}]; least us: {times}")


if __name__ == "__main__":
    main()
