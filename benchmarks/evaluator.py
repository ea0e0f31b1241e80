"""Can the evaluator be trusted, and what does it cost? `python -m benchmarks.evaluator`, part of `make bench`.

- evaluation: the duration of a whole evaluation of `identity` (compile, check, time; all cases), in turn with a cold
  process per stage that makes as many calls.
- clocks: the times that are measured for kernels that wait 50 us, 2 ms and 20 ms.
- three_percent: how often a kernel is called faster than itself with 3 % more work.
- a_a: how often a kernel is called faster than itself.
- honest (`--honest LOAD`): verdicts on all honest kernels of the corpus and all C++ seeds beside LOAD busy loops.

Figures go to benchmarks/results/evaluator.json, with machine, load and spread.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from benchmarks.parts import RESULTS, measured, spread, write
from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Evaluation, Speedup
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.cheats import corpus

WAIT = """
from time import perf_counter_ns
from ctypes import memmove
def custom_kernel(data):
    end = perf_counter_ns() + NS
    x, out = data
    memmove(out.data_ptr(), x.data_ptr(), 2 * x.numel())
    while perf_counter_ns() < end:
        pass
    return out
"""
WORK = """
from kernel_scientist import load
library = load('''
#include <cstdint>
#include <cstring>
extern "C" void work(const void* x, void* out, int64_t bytes, int64_t steps) {
    memcpy(out, x, bytes);
    volatile double sink = 0;
    double value = 1.5;
    for (int64_t i = 0; i < steps; ++i) value = value * 0.999999 + 0.000001;
    sink = value;
}
''')
def custom_kernel(data):
    x, out = data
    library.work(x, out, 2 * x.numel(), STEPS)
    return out
"""
ONE_CASE = (Case(sizes={"size": 4096}, seed=1),)


def main() -> None:
    """Measure what is asked for, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="A/A runs; a third as many of the 3 % test")
    parser.add_argument("--honest", type=int, metavar="LOAD", help="evaluate honest kernels beside so many busy loops")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, measured() as found:
        os.environ["KERNEL_SCIENTIST_CACHE"] = f"{folder}/cache"
        with WorkerPool(Harness()) as shop:
            if options.honest is not None:
                found["honest"] = _honest(shop, options.honest)
            else:
                found["evaluation"] = _speed(shop, Path(folder))
                found["clocks"] = _clocks(shop)
                found["three_percent"] = _three_percent(shop, options.runs // 3)
                found["a_a"] = _a_a(shop, options.runs)
    write(RESULTS / ("evaluator.json" if options.honest is None else "honest.json"), found)


def _evaluator(shop: WorkerPool, problem: str) -> Evaluator:
    return Evaluator(problems.find(problem), "cpu", shop.harness, shop)


def _evaluate(evaluator: Evaluator, kernel: Kernel) -> Evaluation:
    evaluation = evaluator.check(kernel, evaluator.compile(kernel))
    return evaluator.time(kernel, evaluation, [evaluator.reference()])


def _required(evaluation: Evaluation) -> Evaluation:
    if evaluation.verdict is not Verdict.OK:
        raise SystemExit(f"an honest kernel is {evaluation.verdict}: {evaluation.reason} {evaluation.evidence}")
    return evaluation


def _speed(shop: WorkerPool, folder: Path) -> dict[str, Any]:
    """Compare one evaluation with as many calls made by a cold process per stage."""
    evaluator = _evaluator(shop, "identity")
    seed = evaluator.problem.seeds("cpp")[0].read_text()
    ours: dict[str, list[float]] = {"new source": [], "built before": []}
    cold: list[float] = []
    stages: list[int] = []
    evaluator.margins  # noqa: B018 (measured once a day, not per kernel)
    for turn in range(10):
        source = f"{seed}\n# variant {turn}\n".replace("''')", f"// {turn}\n''')")
        kernel = Kernel(name="k", language="cpp", source=source)
        for times in ours.values():
            start = time.perf_counter()
            evaluation = _required(_evaluate(evaluator, kernel))
            times.append(time.perf_counter() - start)
        stages.append(evaluation.speedups[0].stages)
        calls = sum(len(t.samples_us) for t in evaluation.timings) // len(evaluation.timings)
        cold.append(_cold(folder, kernel.source, evaluator, calls))
    return {
        "ours_warm_s": {name: spread(times) for name, times in ours.items()},
        "stages": stages,
        "cold_process_per_stage_s": spread(cold),
        "ratio": round(statistics.median(cold) / statistics.median(ours["built before"]), 2),
        "cases": len(evaluator.profile.tests) + len(evaluator.profile.benchmarks),
    }


def _cold(folder: Path, source: str, evaluator: Evaluator, calls: int) -> float:
    """Run test, benchmark and ranked benchmark, a Python process each, as task harnesses do; the build is cached."""
    (folder / "kernel.py").write_text(source)
    reference = (evaluator.problem.folder / "reference.py").read_text()
    (folder / "reference.py").write_text(reference.replace('"cuda"', '"cpu"'))
    tests, timed = evaluator.profile.tests, evaluator.profile.benchmarks
    start = time.perf_counter()
    for cases, seeds in ((tests, 1), (timed, calls), (timed, calls)):
        script = textwrap.dedent(f"""
            import sys, time
            sys.path.insert(0, {str(folder)!r})
            import torch
            from kernel import custom_kernel
            from reference import check_implementation, generate_input
            for sizes in {[c.sizes for c in cases]!r}:
                for seed in range({seeds}):
                    data = generate_input(**sizes, seed=seed)
                    start = time.perf_counter_ns()
                    output = custom_kernel(data)
                    end = time.perf_counter_ns()
                    good, why = check_implementation(data, output)
                    assert good, why
        """)
        own = {**os.environ, "PYTHONPATH": str(environment.root())}
        subprocess.run([sys.executable, "-c", script], check=True, env=own)
    return time.perf_counter() - start


def _clocks(shop: WorkerPool) -> list[dict[str, Any]]:
    """Read kernels that wait for a known time."""
    rows: list[dict[str, Any]] = []
    for nominal in (50.0, 2000.0, 20000.0):
        evaluator = _evaluator(shop, "identity")
        kernel = Kernel(name="k", language="cpp", source=WAIT.replace("NS", str(int(nominal * 1000))))
        timed = evaluator.time(kernel, evaluator.compile(kernel), [evaluator.reference()], cases=ONE_CASE)
        read = _required(timed).timings[0].time_us
        error = 100 * (read / nominal - 1)
        rows.append({"nominal_us": nominal, "read_us": round(read, 2), "error_percent": round(error, 2)})
    return rows


def _three_percent(shop: WorkerPool, runs: int) -> dict[str, Any]:
    """Time a kernel against itself with 3 % more work: how often is it found faster?"""
    steps = 800_000  # about a millisecond
    kernel = Kernel(name="quick", language="cpp", source=WORK.replace("STEPS", str(steps)))
    slow = TimedSource(name="slow", source=WORK.replace("STEPS", str(steps + steps * 3 // 100)))
    return _compare(_evaluator(shop, "identity"), kernel, slow, runs, ONE_CASE)


def _a_a(shop: WorkerPool, runs: int) -> dict[str, Any]:
    """Time a real kernel against itself: how often is it called faster?"""
    evaluator = _evaluator(shop, "fp8-blockwise-gemm")
    kernel = Kernel(name="one", language="cpp", source=evaluator.problem.seeds("cpp")[-1].read_text())
    return _compare(evaluator, kernel, TimedSource(name="other", source=kernel.source), runs, None)


def _honest(shop: WorkerPool, load: int) -> dict[str, Any]:
    """Evaluate honest kernels beside busy loops; return how many there are, and those that are not `ok`."""
    kernels = [(fixture.name, fixture.problem, fixture.source) for fixture in corpus.load() if not fixture.cheat]
    for problem in ("identity", "rmsnorm", "fp8-blockwise-gemm"):
        seeds = problems.find(problem).seeds("cpp")
        kernels += [(f"{problem}/{seed.stem}", problem, seed.read_text()) for seed in seeds]
    accused: dict[str, str] = {}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        for name, problem, source in kernels:
            evaluation = _evaluate(_evaluator(shop, problem), Kernel(name="k", language="cpp", source=source))
            if evaluation.verdict is not Verdict.OK:
                accused[name] = f"{evaluation.verdict.value}: {evaluation.reason}"
    finally:
        for process in busy:
            process.kill()
    return {"busy_loops": load, "kernels": len(kernels), "accused": accused}


def _compare(
    evaluator: Evaluator, kernel: Kernel, baseline: TimedSource, runs: int, cases: tuple[Case, ...] | None
) -> dict[str, Any]:
    """Time a kernel against a source again and again; count how often it is called faster or slower."""
    ready = evaluator.compile(kernel)
    speedups, took_s = list[Speedup](), list[float]()
    for _ in range(runs):
        start = time.perf_counter()
        timed = evaluator.time(kernel, ready, [baseline], baseline=baseline.name, cases=cases)
        took_s.append(time.perf_counter() - start)
        speedups.append(_required(timed).speedups[0])
    slower = sum(one.interval[1] < 1 for one in speedups)
    return {
        "runs": runs,
        "faster_percent": round(100 * sum(one.faster for one in speedups) / runs, 2),
        "slower_percent": round(100 * slower / runs, 2),
        "ratio": spread([one.ratio for one in speedups]),
        "ended_at_stage": [sum(one.stages == stage for one in speedups) for stage in (1, 2, 3)],
        "seconds": spread(took_s),
        "margins": list(evaluator.margins),
    }


if __name__ == "__main__":
    main()
