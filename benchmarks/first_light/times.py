"""Steps of first light with times: ours beside those of others, and what a row costs the host."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.first_light.clocks import Events
from benchmarks.first_light.here import Here, imported
from benchmarks.first_light.outcome import Facts, StepError
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.worker_pool import WorkerPool

LADDER = (1 << 20, 1 << 22, 1 << 24, 1 << 27)
"""Sizes of `identity`: a call takes from some 2 us to 0.2 ms on an H100."""
ROWS, UNQUEUED, WARM_UP_S = 15, 7, 0.3
FLUSH_BYTES = 256 << 20
"""GPU MODE writes so many bytes before a call."""
GOAL, GOAL_US = 0.01, 2.0
"""By how much our time of a call may differ from that behind a reading flush: this part, and so many microseconds."""


def times_agree(here: Here) -> Facts:
    """Our time of a call, beside do_bench, GPU MODE's way and a call behind a flush that reads."""
    events, failures, worst = Events(here.runtime()), list[str](), 0.0
    with here.pool() as pool:
        for problem, case in _cases(here):
            kernel, name = here.kernel(problem), f"{problem} {case.name}"
            try:
                found = {**_ours(here, pool, problem, kernel, case), **_others(here, problem, kernel, case, events)}
            except Exception as error:  # the other cases' times are wanted, whatever this is
                failures.append(f"{name}: {type(error).__name__}: {error}"[:1000])
                yield {name: failures[-1]}
                continue
            difference_us = found["time_us"] - found["behind_sweep_us"]
            worst = max(worst, abs(difference_us) - GOAL * found["behind_sweep_us"])
            yield {name: {"kernel": kernel.name, **found, "difference_us": difference_us}}
    yield {"beyond_goal_us": worst, "goal_reached": worst <= GOAL_US, "failures": failures}
    yield {"note": f"times differ from those behind a reading flush by up to {worst:.1f} us + {GOAL:.0%}"}
    if failures:
        raise StepError("; ".join(failures))


def _cases(here: Here) -> list[tuple[str, Case]]:
    if here.standin:
        return [(problem, here.case(problem)) for problem in ("identity", "rmsnorm")]
    ladder = [("identity", Case(sizes={"size": size}, seed=1)) for size in LADDER]
    return [*ladder, *((problem, here.case(problem)) for problem in ("rmsnorm", "fp8-blockwise-gemm"))]


def _ours(here: Here, pool: WorkerPool, problem: str, kernel: Kernel, case: Case) -> dict[str, float]:
    """Return medians of rows of one call in a worker: what is scored, and from an idle device to an idle device."""
    samples = Samples()
    with pool.workers([False], timing=True) as (worker,):
        driver = Driver(here.problem(problem), pool.harness, pool)
        driver.load(worker, kernel.source, [case])
        end = time.monotonic() + WARM_UP_S
        while time.monotonic() < end:
            driver.row(worker, {0: driver.inputs.draw(case)})
        for number in range(ROWS + UNQUEUED):
            inputs, queued = driver.inputs.draw(case), number < ROWS
            row, outputs = driver.row(worker, {1: inputs}, warm=0, queued=queued)
            driver.verify([inputs], outputs)
            if queued:
                samples.add(kernel.name, case.name, 0, number, row)
            else:
                samples.add_unqueued(kernel.name, case.name, row)
    queued = samples.rows_of(kernel.name, case.name)
    idle = samples.unqueued[kernel.name, case.name]
    low, median, high = statistics.quantiles((times := samples.times_us(kernel.name, case.name)), n=4)
    return {
        "time_us": median,
        "quartiles_apart": (high - low) / median,
        "least_us": min(times),
        "delay_us": statistics.median(row.reading.ahead_ns for row in queued) / 1000,
        "idle_to_idle_us": statistics.median(row.reading.event_ns for row in idle) / 1000,
        "idle_to_idle_host_us": statistics.median(row.reading.ns for row in idle) / 1000,
        "excess_us": statistics.median(r.reading.ns - r.reading.ahead_ns - r.reading.event_ns for r in queued) / 1000,
    }


def _others(here: Here, problem: str, kernel: Kernel, case: Case, events: Events) -> dict[str, Any]:
    """Return medians of calls in this process: by others' ways, and queued behind our sweep."""
    import torch

    call, data = imported(kernel.source), here.problem(problem).generate(case, 1)
    flushed = torch.empty((1 << 20 if here.standin else FLUSH_BYTES) // 8, dtype=torch.int64, device=here.device)
    call(data)
    ways: dict[str, Callable[[], object]] = {
        "gpu_mode_us": lambda: flushed.fill_(42),
        "behind_sweep_us": here.sweep(here.runtime()),
    }
    found: dict[str, Any] = {
        name: statistics.median(events.span(lambda: call(data), before).event_us for _ in range(3 * ROWS))
        for name, before in ways.items()
    }
    if not here.standin:
        from triton.testing import do_bench

        ms: Any = do_bench(lambda: call(data), return_mode="median")
        found["do_bench_us"] = ms * 1000
    return found


def overheads(here: Here) -> Facts:
    """What a row costs the host, in milliseconds: each of its parts, and all."""
    case, kernel = here.case("identity"), here.kernel("identity")
    parts: dict[str, list[float]] = {}
    with here.pool() as pool, pool.workers([False], timing=True) as (worker,):
        driver = Driver(here.problem("identity"), pool.harness, pool)
        driver.load(worker, kernel.source, [case])
        _measured(driver, worker, parts)
        for _ in range(2 * ROWS):
            start = time.perf_counter()
            inputs = driver.inputs.draw(case)
            drawn = time.perf_counter()
            _, outputs = driver.row(worker, {1: inputs}, warm=None, queued=True)
            ended = time.perf_counter()
            driver.verify([inputs], outputs)
            spent = {"draw": drawn - start, "row": ended - drawn, "verify": time.perf_counter() - ended}
            for name, seconds in {**spent, "all": time.perf_counter() - start}.items():
                parts.setdefault(name, []).append(seconds * 1000)
        size = driver.inputs.draw(case).bytes
    medians = {name: round(statistics.median(ms), 3) for name, ms in parts.items()}
    yield {"input_bytes": size, "host_ms": medians}
    yield {"note": f"a row with {size >> 20} MiB of inputs and buffers takes {medians['all']:.1f} ms"}


def _measured(driver: Driver, worker: WorkerClient, parts: dict[str, list[float]]) -> None:
    """Let the parts of a row measure themselves."""

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = work(*arguments)
            parts.setdefault(name, []).append((time.perf_counter() - start) * 1000)
            return result

        return measured

    vars(driver)["deliver"] = timed("places", driver.deliver)
    vars(driver)["write"] = timed("values_and_sweep", driver.write)
    vars(worker.inputs)["damage"] = timed("damage", worker.inputs.damage)
