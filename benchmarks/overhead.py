"""What our own code costs per kernel: `make bench`. Figures go to benchmarks/results/, with machine, load and spread.

- `--help`: wall time of the command line's answer.
- per kernel: a real campaign (flow, tasks, server, artifacts, device lock, store) around a judge that takes no time.
- a fork of a worker, a build, a cached build.
"""

import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.records import environment

environment.prepare()

from kernel_scientist import problems  # noqa: E402
from kernel_scientist.evaluate.evaluator import Evaluator, TimedSource  # noqa: E402
from kernel_scientist.evaluate.timing.conditions import Load  # noqa: E402
from kernel_scientist.hardware import cpu  # noqa: E402
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Speedup, Timing  # noqa: E402
from kernel_scientist.records.kernel import Case, Kernel, Verdict  # noqa: E402
from kernel_scientist.records.params import Harness, Params  # noqa: E402
from kernel_scientist.workers.pool import WorkerPool  # noqa: E402

RESULTS = Path(__file__).parent / "results"
KERNELS = 30


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": f"{folder}/cache"}
        found: dict[str, Any] = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
        before = Load.now()
        found["help_s"] = _spread(_help, 10)
        found |= _workers()
        found |= per_kernel(Path(folder), KERNELS)
        found["machine"]["meanwhile"] = before.until_now()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "overhead.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def machine() -> dict[str, Any]:
    """Return what a figure depends on."""
    load = round(os.getloadavg()[0], 2)
    return {"cpu": cpu.model(), "cores": cpu.cores(), "system": platform.platform(), "load_before": load}


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
            pass  # the zygote's start is not a fork's

        def fork() -> None:
            with shop.worker():
                pass

        fresh = iter(varied)
        out: dict[str, Any] = {"fork_worker_s": _spread(fork, 20)}
        out["build_s"] = _spread(lambda: evaluator.compile(next(fresh)), len(varied))
        out["cached_build_s"] = _spread(lambda: evaluator.compile(varied[0]), 10)
    return out


def per_kernel(folder: Path, wanted: int) -> dict[str, Any]:
    """Run a real campaign with an evaluator that answers at once; all the time is our own."""
    from prefect import flow

    from flows.optimize import _search
    from flows.progress import Progress
    from flows.server import serving
    from kernel_scientist.campaign.state import Campaign

    params = Params.model_validate(
        {
            "problem": "fp8-blockwise-gemm",
            "search": {"generations": wanted // 3, "experiments": 3, "concurrency": 1},
            "tuning": {"tries": 0},  # it takes its time on the real clock
            "tracking": {"uri": f"sqlite:///{folder}/mlruns/mlflow.db"},
        }
    )
    clocks = {"mlflow": 0.0, "agent": 0.0}
    total = 0.0
    kernels = 0

    @flow(name="bench")
    def run() -> None:
        nonlocal total, kernels
        with evaluation_context(params) as lab:
            campaign = Campaign(dataclasses.replace(lab, evaluator=InstantEvaluator(lab.evaluator)))
            for owner, name, clock in (
                (campaign.store, "log", "mlflow"),
                (campaign.store, "progress", "mlflow"),
                (campaign, "select", "agent"),
                (campaign, "design", "agent"),
                (campaign, "write", "agent"),
            ):
                setattr(owner, name, _clocked(getattr(owner, name), clocks, clock))
            progress = Progress(campaign)
            start = time.perf_counter()
            _search(campaign, progress, lambda: None)
            total, kernels = time.perf_counter() - start, len(campaign.population)

    with serving():
        run()
    prefect = total - clocks["mlflow"] - clocks["agent"]
    return {
        "kernels": kernels,
        "per_kernel_mlflow_s": round(clocks["mlflow"] / kernels, 4),
        "per_kernel_prefect_s": round(prefect / kernels, 4),
        "per_kernel_together_s": round((prefect + clocks["mlflow"]) / kernels, 4),
        "per_kernel_playbook_s": round(clocks["agent"] / kernels, 4),
    }


class InstantEvaluator(Evaluator):
    """An evaluator that finds every kernel right and a little faster than the last, in no time."""

    def __init__(self, real: Evaluator) -> None:
        super().__init__(real.problem, real.profile_name, real.harness, real.pool)
        self._count = 0

    def compile(self, kernel: Kernel) -> Evaluation:
        """Return an evaluation without a compiler."""
        return Evaluation(verdict=Verdict.OK, compile=CompileReport(ok=True, compiler="none"))

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Return what was handed in."""
        return so_far

    def time(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        against: Sequence[TimedSource],
        baseline: str | None = None,
        cases: Sequence[Case] | None = None,
    ) -> Evaluation:
        """Return made-up timings; they stay in a store that is thrown away."""
        self._count += 1
        timings = tuple(
            Timing(case=c.name, time_us=100.0, interval_us=(99.0, 101.0), floor_us=1.0, samples_us=(100.0,) * 16)
            for c in self.profile.benchmarks
        )
        ratio = 1 + 0.1 * self._count
        speedups = tuple(Speedup(against=c.name, ratio=ratio, interval=(ratio, ratio)) for c in against)
        return so_far.model_copy(update={"timings": timings, "speedups": speedups})


def _clocked(work: Callable[..., Any], clocks: dict[str, float], name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            clocks[name] += time.perf_counter() - start

    return call


if __name__ == "__main__":
    main()
