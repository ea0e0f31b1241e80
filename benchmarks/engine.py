"""How many kernels an hour the engine makes, and what Prefect and MLflow cost: `make bench`, results/engine.json.

    python -m benchmarks.engine [throughput] [patient] [peers] [pipeline] [tools] [scale] [start]

Real campaigns (flow, Prefect server, MLflow store, device lock, litellm over HTTP) on a scripted endpoint that replies
after a fixed delay, with an evaluator that takes a fixed time on the device and does nothing.
"""

import dataclasses
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from benchmarks import endpoint
from benchmarks.parts import RESULTS, measured
from kernel_scientist.campaign.build_timing_lock import BuildTimingLock
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.target import Target
from kernel_scientist.campaign.targets.local import Local
from kernel_scientist.evaluation.evaluator import Evaluator, TimedSource
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Speedup, Timing
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness, Params

ROLES = ("selector", "designer", "writer")
BOUNDS = {"scientist_bound": 8 * 3600 / 2 * 3 / 5, "greedy_bound": 8 * 3600 / 2}
"""What the arithmetic of calls allows with eight in flight and 2 s a reply: five calls for three kernels, and one for
one."""
WARM_UP_S = 15.0
"""Beginning of a run that rates leave out: server, seeds, first generations, in seconds."""


@dataclasses.dataclass(frozen=True)
class UsageSample:
    """State of a run at one moment. Times are in seconds, CPU times those of all its processes."""

    at_s: float
    kernels: int
    cpu_s: float
    device_s: float
    builds: int


class FixedTimeEvaluator(Evaluator):
    """An evaluator that keeps the device for a fixed time and finds every kernel a little faster than the last."""

    def __init__(self, real: Evaluator, device_s: float, build_s: float = 0.0) -> None:
        super().__init__(real.problem, real.profile_name, real.harness, real.pool)
        self.device_s, self.build_s, self.count, self.builds = device_s, build_s, 0, 0

    def with_harness(self, harness: Harness) -> "FixedTimeEvaluator":
        """Return this evaluator: no setting changes it."""
        return self

    def measure_machine(self, hold: Any) -> None:
        """Do nothing: made-up timings have no noise."""

    def compile(self, kernel: Kernel) -> Evaluation:
        """Wait, and return an evaluation without a compiler."""
        time.sleep(self.build_s)
        self.builds += 1
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
        """Wait, and return made-up timings; they stay in a store that is thrown away."""
        time.sleep(self.device_s)
        self.count += 1
        ratios = {source.name: 1 + 0.001 * self.count if source.name == REFERENCE else 1.0005 for source in against}
        timings = tuple(
            Timing(case=c.name, time_us=100.0, interval_us=(99.0, 101.0), floor_us=1.0, samples_us=(100.0,) * 16)
            for c in self.profile.benchmarks
        )
        speedups = tuple(Speedup(against=name, ratio=r, interval=(r, r)) for name, r in ratios.items())
        return so_far.model_copy(update={"timings": timings, "speedups": speedups})


class FixedTimeTarget(Local):
    """A device of this host with an evaluator of that kind."""

    evaluator: FixedTimeEvaluator


def fixed(target: Target, device_s: float, build_s: float = 0.0) -> FixedTimeTarget:
    """Return a target like an open one of this host, whose timings take a fixed time."""
    assert isinstance(target, Local)
    evaluator = FixedTimeEvaluator(target.evaluator, device_s, build_s)
    return FixedTimeTarget(target.params, target.problem, target.address, evaluator)


def main(parts: Sequence[str]) -> None:
    """Measure the named parts (default: all), print, write. Parts that are not measured keep their earlier figures."""
    from benchmarks import overhead, peers, scale

    work: dict[str, Callable[[], dict[str, Any]]] = {
        "throughput": throughput,
        "patient": patient,
        "peers": peers.measure,
        "pipeline": pipeline,
        "tools": tools,
        "scale": scale.measure,
        "start": overhead.commands,
    }
    file = RESULTS / "engine.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for part in parts or work:
        with measured() as figures:
            figures |= work[part]()
        found[part] = figures
        ours, others = found.get("throughput", {}), found.get("peers", {})
        host = [figures.get("machine", {}).get("system") for figures in (ours, others)]
        rows = {**ours, **(others if host[0] == host[1] else {})}  # rates of different hosts are not compared
        names = [name for name in ("scientist", "greedy", *peers.PACKAGES) if name in rows]
        found["kernels_per_hour"] = {**{name: rows[name].get("kernels_per_hour") for name in names}, **BOUNDS}
        found["per_kernel_together_s"] = rows.get("per_kernel_together_s")
        file.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def throughput(seconds: float = 60.0) -> dict[str, Any]:
    """Return kernels an hour with a reply after 2 s, 0.2 s on the device, eight calls in flight; CPU time a kernel."""
    with endpoint.serving(2.0) as address:
        scientist = run(settings(address, calls=8), 0.2, seconds)
        greedy = run(settings(address, calls=8, strategy="greedy", designer="writer"), 0.2, seconds)
        bare = run(settings(address, calls=8, strategy="greedy", designer="writer"), 0.2, seconds, services=False)
    together_s = greedy["cpu_s_per_kernel"] - bare["cpu_s_per_kernel"]
    runs = {"scientist": scientist, "greedy": greedy, "greedy_without_prefect_and_mlflow": bare}
    return {**runs, "per_kernel_together_s": round(together_s, 4)}


def patient() -> dict[str, Any]:
    """Return rates with a reply after 10 s, 0.2 s on the device, eight calls in flight, and their shares of what the
    arithmetic of calls allows."""
    with endpoint.serving(10.0) as address:
        runs = {
            "scientist": run(settings(address, calls=8), 0.2, 180.0, warm_up_s=60.0),
            "greedy": run(settings(address, calls=8, strategy="greedy", designer="writer"), 0.2, 120.0, warm_up_s=40.0),
        }
    shares = {name: runs[name]["kernels_per_hour"] / (BOUNDS[f"{name}_bound"] / 5) for name in runs}
    return {**runs, "shares": {name: round(share, 3) for name, share in shares.items()}}


def pipeline() -> dict[str, Any]:
    """Return rates with a reply after 20 s, 2 s on the device: sixteen calls in flight against one after another."""
    with endpoint.serving(20.0) as address:
        side_by_side = run(settings(address, calls=16), 2.0, 240.0, warm_up_s=90.0)
        one = run(settings(address, calls=1), 2.0, 240.0, warm_up_s=10.0)
    ratio = side_by_side["kernels_per_hour"] / one["kernels_per_hour"]
    return {"sixteen_calls": side_by_side, "one_call": one, "ratio": round(ratio, 2)}


def tools() -> dict[str, Any]:
    """Return rates with a reply after 2 s, 2 s on a device that builds do not disturb, 0.5 s a build.

    Of roles that answer at once, and of roles that first compile and check a draft by tools.
    """
    with endpoint.serving(2.0) as address:
        plain = run(settings(address, calls=16), 2.0, 120.0, build_s=0.5, warm_up_s=40.0)
        with_tools = run(settings(address, calls=16, tools=True), 2.0, 120.0, build_s=0.5, warm_up_s=40.0)
    return {"without": plain, "with": with_tools}


def settings(
    address: str, calls: int, strategy: str = "scientist", designer: str = "", tools: bool = False
) -> dict[str, Any]:
    """Return the parameters of a campaign on the scripted endpoint."""
    model = {"model": "openai/scripted", "api_base": address, "price": {"input_usd": 0, "output_usd": 0}}
    roles = {role: {**model, "max_tokens": 2000} for role in ROLES}
    for role in ("designer", "writer") if tools else ():
        roles[role] |= {"tools": True, "functions": False}
    if designer:
        roles["designer"] = {"model": designer}
    return {
        "problem": "identity",
        "search": {"generations": 100_000, "strategy": strategy},
        "llm": {**roles, "concurrency": calls},
        "knowledge": {"distil_every": 0},
        "tuning": {"tries": 0},
        "budget": {"kernels": 100_000},
    }


def run(
    values: dict[str, Any],
    device_s: float,
    seconds: float,
    services: bool = True,
    warm_up_s: float = WARM_UP_S,
    build_s: float | None = None,
) -> dict[str, Any]:
    """Run a campaign for some seconds; return its rates after the warm-up.

    `build_s`: how long a build takes, which then does not wait for timings, as on a GPU.
    `services`: False runs the engine's steps without Prefect, and keeps kernels in memory instead of in MLflow.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PREFECT_HOME": f"{folder}/prefect", "KERNEL_SCIENTIST_CACHE": f"{folder}/cache"}
        values = {**values, "tracking": {"uri": f"sqlite:///{folder}/mlruns/mlflow.db"}}
        values["llm"] |= {"replies": f"{folder}/replies"}
        values["budget"] |= {"minutes": seconds / 60}
        samples: list[UsageSample] = []
        _campaign(Params.model_validate(values), device_s, build_s, services, samples)
    steady = [s for s in samples if s.at_s >= samples[0].at_s + warm_up_s and s.at_s <= samples[0].at_s + seconds]
    first, last = steady[0], steady[-1]
    kernels, took_s = last.kernels - first.kernels, last.at_s - first.at_s
    halves = [(first, steady[len(steady) // 2]), (steady[len(steady) // 2], last)]
    return {
        "kernels": kernels,
        "seconds": round(took_s, 1),
        "kernels_per_hour": round(3600 * kernels / took_s),
        "halves_per_hour": [round(3600 * (b.kernels - a.kernels) / (b.at_s - a.at_s)) for a, b in halves],
        "cpu_s_per_kernel": round((last.cpu_s - first.cpu_s) / kernels, 4),
        "device_busy": round((last.device_s - first.device_s) / took_s, 3),
        "builds_per_kernel": round((last.builds - first.builds) / kernels, 2),
    }


def _campaign(
    params: Params, device_s: float, build_s: float | None, services: bool, samples: list[UsageSample]
) -> None:
    from prefect import flow

    from flows.progress import Progress
    from flows.server import serving
    from kernel_scientist.campaign.campaign import Campaign
    from kernel_scientist.campaign.engine import Engine
    from kernel_scientist.campaign.steps import FUNCTIONS
    from tasks.chain import Chain

    def work() -> None:
        with evaluation_context(params) as context:
            target = fixed(context.target, device_s, build_s or 0.0)
            evaluator = target.evaluator
            steps = Chain() if services else FUNCTIONS
            quiet = context.quiet if build_s is None else BuildTimingLock(False)
            campaign = Campaign(dataclasses.replace(context, target=target, steps=steps, quiet=quiet))
            with _sampled(lambda: len(campaign.population), evaluator, samples):
                if services:
                    progress = Progress(campaign)
                    Engine(campaign, progress.step, progress.done, lambda: None).run()
                    return

                def keep(trials: Sequence[Any]) -> None:
                    for trial in trials:
                        campaign.population.add(trial)

                campaign.record = keep
                Engine(campaign, lambda *_: None, lambda _: None, lambda: None).run()

    if not services:
        work()
        return
    with serving():
        flow(work, name="bench")()


@contextmanager
def _sampled(kernels: Callable[[], int], evaluator: FixedTimeEvaluator, samples: list[UsageSample]) -> Generator[None]:
    """Take a sample every second in a thread; the endpoint's CPU time is left out."""
    me, ended = psutil.Process(), threading.Event()

    def sample() -> None:
        while not ended.wait(1.0):
            cpu_s = sum(me.cpu_times()[:2])
            for child in me.children(recursive=True):
                try:
                    if "benchmarks.endpoint" not in child.cmdline():
                        cpu_s += sum(child.cpu_times()[:2])
                except psutil.Error:
                    pass
            used_s = evaluator.count * evaluator.device_s
            samples.append(UsageSample(time.monotonic(), kernels(), cpu_s, used_s, evaluator.builds))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
