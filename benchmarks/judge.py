"""Can the evaluator be trusted, and what does it cost? `python -m benchmarks.judge`, part of `make bench`.

- evaluation: the duration of a whole evaluation of `identity` (compile, check, time; all cases), in turn with a cold
  process per stage that makes as many calls.
- clocks: the times that are measured for kernels that wait 50 us, 2 ms and 20 ms.
- three_percent: how often a kernel is called faster than itself with 3 % more work.
- a_a: how often a kernel is called faster than itself.
- honest (`--honest LOAD`): verdicts on all honest kernels of the corpus and all C++ seeds beside LOAD busy loops.

Figures go to benchmarks/results/judge.json, with machine, load and spread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from benchmarks.overhead import summary
from benchmarks.parts import RESULTS, machine
from kernel_scientist.records import environment

environment.prepare()

from kernel_scientist import problems  # noqa: E402
from kernel_scientist.evaluate.evaluator import Evaluator  # noqa: E402
from kernel_scientist.evaluate.timing.conditions import Load  # noqa: E402
from kernel_scientist.evaluate.timing.plan import TimedSource  # noqa: E402
from kernel_scientist.records.evaluation import Evaluation  # noqa: E402
from kernel_scientist.records.kernel import Case, Kernel, Verdict  # noqa: E402
from kernel_scientist.records.params import Harness  # noqa: E402
from kernel_scientist.workers.pool import WorkerPool  # noqa: E402
from tests.cheats import corpus  # noqa: E402

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
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNEL_SCIENTIST_CACHE"] = f"{folder}/cache"
        found: dict[str, Any] = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
        before = Load.now()
        with WorkerPool(Harness()) as shop:
            if options.honest is not None:
                found["honest"] = _honest(shop, options.honest)
            else:
                found["evaluation"] = _speed(shop, Path(folder))
                found["clocks"] = _clocks(shop)
                found["three_percent"] = _three_percent(shop, options.runs // 3)
                found["a_a"] = _a_a(shop, options.runs)
        found["machine"]["meanwhile"] = before.until_now()
    RESULTS.mkdir(exist_ok=True)
    name = "judge.json" if options.honest is None else "honest.json"
    (RESULTS / name).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _evaluate(evaluator: Evaluator, kernel: Kernel) -> Evaluation:
    evaluation = evaluator.check(kernel, evaluator.compile(kernel))
    return evaluator.time(kernel, evaluation, [evaluator.reference()])


def _ok(evaluator: Evaluator, kernel: Kernel) -> Evaluation:
    evaluation = _evaluate(evaluator, kernel)
    if evaluation.verdict is not Verdict.OK:
        raise SystemExit(f"the benchmark's own kernel is {evaluation.verdict}: {evaluation}")
    return evaluation


def _speed(shop: WorkerPool, folder: Path) -> dict[str, Any]:
    """Compare one evaluation with as many calls made by a cold process per stage."""
    problem = problems.find("identity")
    evaluator = Evaluator(problem, "cpu", shop.harness, shop)
    seed = problem.seeds("cpp")[0].read_text()
    ours: dict[str, list[float]] = {"new source": [], "built before": []}
    cold: list[float] = []
    stages: list[int] = []
    evaluator.margins  # noqa: B018 (measured once a day, not per kernel)
    for turn in range(10):
        kernel = Kernel(
            name="k", language="cpp", source=f"{seed}\n# variant {turn}\n".replace("''')", f"// {turn}\n''')")
        )
        for name in ours:
            start = time.perf_counter()
            evaluation = _ok(evaluator, kernel)
            ours[name].append(time.perf_counter() - start)
        stages.append(evaluation.speedups[0].stages)
        calls = sum(len(t.samples_us) for t in evaluation.timings) // len(evaluation.timings)
        cold.append(_cold(folder, kernel.source, problem.folder / "reference.py", evaluator, calls))
    return {
        "ours_warm_s": {name: summary(times) for name, times in ours.items()},
        "stages": stages,
        "cold_process_per_stage_s": summary(cold),
        "ratio": round(statistics.median(cold) / statistics.median(ours["built before"]), 2),
        "cases": len(evaluator.profile.tests) + len(evaluator.profile.benchmarks),
    }


def _cold(folder: Path, source: str, reference: Path, evaluator: Evaluator, calls: int) -> float:
    """Run test, benchmark and ranked benchmark, a Python process each, as task harnesses do; the build is cached."""
    (folder / "kernel.py").write_text(source)
    (folder / "reference.py").write_text(reference.read_text().replace('"cuda"', '"cpu"'))
    stages = {
        "test": evaluator.profile.tests,
        "benchmark": evaluator.profile.benchmarks,
        "ranked": evaluator.profile.benchmarks,
    }
    start = time.perf_counter()
    for stage, cases in stages.items():
        script = textwrap.dedent(f"""
            import sys, time
            sys.path.insert(0, {str(folder)!r})
            import torch
            from kernel import custom_kernel
            from reference import check_implementation, generate_input
            for sizes in {[c.sizes for c in cases]!r}:
                for seed in range({1 if stage == "test" else calls}):
                    data = generate_input(**sizes, seed=seed)
                    start = time.perf_counter_ns()
                    output = custom_kernel(data)
                    end = time.perf_counter_ns()
                    good, why = check_implementation(data, output)
                    assert good, why
        """)
        subprocess.run(
            [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(environment.root())}
        )
    return time.perf_counter() - start


def _clocks(shop: WorkerPool) -> list[dict[str, Any]]:
    """Read kernels that wait for a known time."""
    rows: list[dict[str, Any]] = []
    for nominal in (50.0, 2000.0, 20000.0):
        evaluator = Evaluator(problems.find("identity"), "cpu", shop.harness, shop)
        kernel = Kernel(name="k", language="cpp", source=WAIT.replace("NS", str(int(nominal * 1000))))
        evaluation = evaluator.compile(kernel)
        timed = evaluator.time(kernel, evaluation, [evaluator.reference()], cases=ONE_CASE)
        if timed.verdict is not Verdict.OK:
            raise SystemExit(f"the busy-wait kernel is {timed.verdict}: {timed.reason} {timed.evidence}")
        read = timed.timings[0].time_us
        rows.append(
            {"nominal_us": nominal, "read_us": round(read, 2), "error_percent": round(100 * (read / nominal - 1), 2)}
        )
    return rows


def _three_percent(shop: WorkerPool, runs: int) -> dict[str, Any]:
    """Time a kernel against itself with 3 % more work: how often is it found faster?"""
    problem = problems.find("identity")
    evaluator = Evaluator(problem, "cpu", shop.harness, shop)
    steps = 800_000  # about a millisecond
    kernel = Kernel(name="quick", language="cpp", source=WORK.replace("STEPS", str(steps)))
    slow = TimedSource(name="slow", source=WORK.replace("STEPS", str(steps + steps * 3 // 100)))
    return {"runs": runs, **_compare(evaluator, kernel, slow, runs, ONE_CASE), "margins": list(evaluator.margins)}


def _a_a(shop: WorkerPool, runs: int) -> dict[str, Any]:
    """Time a real kernel against itself: how often is it called faster?"""
    problem = problems.find("fp8-blockwise-gemm")
    evaluator = Evaluator(problem, "cpu", shop.harness, shop)
    kernel = Kernel(name="one", language="cpp", source=problem.seeds("cpp")[-1].read_text())
    same = TimedSource(name="other", source=kernel.source)
    return {"runs": runs, **_compare(evaluator, kernel, same, runs, None), "margins": list(evaluator.margins)}


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
            evaluator = Evaluator(problems.find(problem), "cpu", shop.harness, shop)
            evaluation = _evaluate(evaluator, Kernel(name="k", language="cpp", source=source))
            if evaluation.verdict is not Verdict.OK:
                accused[name] = f"{evaluation.verdict.value}: {evaluation.reason}"
    finally:
        for process in busy:
            process.kill()
    return {"busy_loops": load, "kernels": len(kernels), "accused": accused}


def _compare(
    evaluator: Evaluator, kernel: Kernel, baseline: TimedSource, runs: int, cases: tuple[Case, ...] | None
) -> dict[str, Any]:
    ready = evaluator.compile(kernel)
    faster, slower, stages, ratios, seconds = 0, 0, [0, 0, 0], list[float](), list[float]()
    for _ in range(runs):
        start = time.perf_counter()
        timed = evaluator.time(kernel, ready, [baseline], baseline=baseline.name, cases=cases)
        seconds.append(time.perf_counter() - start)
        if timed.verdict is not Verdict.OK:
            raise SystemExit(f"an honest kernel is {timed.verdict}: {timed.reason} {timed.evidence}")
        speedup = timed.speedups[0]
        faster, slower = faster + speedup.faster, slower + (speedup.interval[1] < 1 - speedup.margin)
        stages[speedup.stages - 1] += 1
        ratios.append(speedup.ratio)
    return {
        "faster_percent": round(100 * faster / runs, 2),
        "slower_percent": round(100 * slower / runs, 2),
        "ratio": summary(ratios),
        "ended_at_stage": stages,
        "seconds": summary(seconds),
    }


if __name__ == "__main__":
    main()
