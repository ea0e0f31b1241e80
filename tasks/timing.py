"""Time a kernel: measure the machine's noise, wait for the device, time, read hardware counters."""

from collections.abc import Callable
from typing import TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.sandbox.device_lock import Turn
from tasks import retries

Measured = TypeVar("Measured")


@task(task_run_name="measure this machine: its noise, its peaks", **retries.DEVICE)
def measure_machine(bench: Bench) -> None:
    """Measure noise and peaks, once a day, before the first comparison with an incumbent."""
    retries.pause(retries.DEVICE_S, bench.stopped)
    steps.measure_machine(bench)


@task(task_run_name="{title}", **retries.DEVICE)
def wait(turn: Turn, still_s: float, title: str) -> None:
    """Wait until `turn` holds the device, so that the waiting does not look like a long timing."""
    steps.wait(turn, still_s)


@task(
    task_run_name="{title}",
    timeout_seconds=4 * 3600,  # a leaderboard may take kernelbot.timeout_s for each of three sources
    **retries.DEVICE,  # without a cache: times are valid only for their machine and moment
)
def time_kernel(bench: Bench, kernel: Kernel, measure: Callable[[], Measured], title: str, turn: Turn) -> Measured:
    """Return what `measure` returns, while the device is locked. `title`: what is done, such as `time k00012`."""
    retries.pause(retries.DEVICE_S, bench.stopped)
    return steps.time_kernel(bench, kernel, measure, turn)


time_once = time_kernel.with_options(retries=0)
"""The same on a target that repeats a timing that failed by itself (`Target.repeats`)."""


@task(
    task_run_name="count {kernel.name}",
    timeout_seconds=4 * 3600,  # includes waiting for the device; harness.counters_timeout_s limits the profiling
    cache_policy=NO_CACHE,  # counters belong to the times of the same run
)
def count_kernel(bench: Bench, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add hardware counters. They are optional, so nothing is repeated."""
    return steps.count_kernel(bench, kernel, timed)
