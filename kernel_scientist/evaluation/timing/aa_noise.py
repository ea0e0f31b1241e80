"""A/A noise of this machine: a source timed against itself; the result is kept for a day per problem and host.

A kernel counts as faster only if its gain exceeds this noise. A/A runs use the same protocol as kernels, so the
margin covers differences between processes (memory layout, placement) as well as between minutes.
"""

import json
import logging
import math
import socket
import time
from contextlib import AbstractContextManager
from pathlib import Path

from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.timing import schedule, statistics
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.evaluation.timing.plan import Hold, TimedSource, TimingPlan
from kernel_scientist.hardware import cpu
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BesideError
from kernel_scientist.records.kernel import digest
from kernel_scientist.sandbox import device_lock
from kernel_scientist.sandbox.failure import KernelFailure

VALID_S, VALID_LARGE_S = 24 * 3600, 3600
"""Seconds for which a measurement is reused: shorter if it is large, which suggests a busy machine."""
LARGE = 0.03
FIRST, SECOND = "first", "second"
LEAST_RUNS = 3
"""A/A runs that say something about the noise: the largest of two is too often a small one."""
TOLD_S = 60.0
"""Seconds between two lines on how far a measurement is."""
progress = logging.getLogger("kernel_scientist.progress")


def kept(driver: Driver, profile: str) -> list[float] | None:
    """Return this machine's noise per stage; zeros if `harness.noise_runs` is 0, None if a measurement is due."""
    if driver.harness.noise_runs == 0:
        return [0.0] * driver.harness.stages
    file = _file(driver, profile)
    noise: list[float] = json.loads(file.read_text())["margins"] if file.exists() else []
    due = not noise or time.time() - file.stat().st_mtime > (VALID_S if max(noise) < LARGE else VALID_LARGE_S)
    return None if due else noise


def turn(driver: Driver, profile: str) -> AbstractContextManager[None]:
    """Take turns with the other processes of this host that measure the noise.

    Raises StoppedError when the work is to end.
    """
    return device_lock.turn(_file(driver, profile), driver.pool.stopped, "measure this machine's noise")


def keep(driver: Driver, profile: str, noise: list[float]) -> list[float]:
    """Store the noise for a day; return it."""
    content = {"margins": noise, "machine": cpu.model(), "problem": driver.problem.name}
    environment.keep(_file(driver, profile), json.dumps(content))
    return noise


def measure(
    driver: Driver, plan: TimingPlan, source: TimedSource, hold: Hold, limit_s: float = math.inf
) -> tuple[list[float], int]:
    """Time a source against itself `harness.noise_runs` times, with all stages; return the noise after each stage.

    No run but the first begins that would probably end after `limit_s` seconds. Returns how many there were as well.

    `plan` has no baseline and the candidate FIRST. `hold` holds the device's lock during each run.

    The noise is the largest distance from 1 of an interval of a source against itself, over all runs. (One interval
    reflects the spread of its blocks, not differences between processes or minutes.)
    """
    sources = [source.model_copy(update={"name": name}) for name in (FIRST, SECOND)]
    deviations: list[list[float]] = [[] for _ in range(plan.stages)]
    began, told_s, waited_s, runs = time.monotonic(), 0.0, 0.0, driver.harness.noise_runs
    run = 0
    for run in range(1, runs + 1):
        asked = time.monotonic()
        if run > 1 and (asked - began) * run / (run - 1) >= limit_s:  # it would end later, as long as those before
            run -= 1
            break
        with hold():
            waited_s += time.monotonic() - asked
            samples = _timed(driver, plan, sources)
        if (gone_s := time.monotonic() - began) - told_s >= TOLD_S and run < runs:
            told_s, others = gone_s, f", {waited_s:.0f} s of them waiting for others" if waited_s >= 1 else ""
            progress.warning(
                "measuring this machine's noise: %d of %d A/A runs after %.0f s%s", run, runs, gone_s, others
            )
        for stage in range(plan.stages):
            tables = (samples.table(name, stage + 1) for name in (FIRST, SECOND))
            low, high = statistics.ratio(*tables).interval(plan.confidence)
            deviations[stage].append(max(low, 1 / high) - 1)
    return [max(0.0, *values) for values in deviations], run


def _timed(driver: Driver, plan: TimingPlan, sources: list[TimedSource]) -> Samples:
    """Time the source against itself. Raises InfrastructureError where it fails: it is no kernel that is judged."""
    try:
        return schedule.run(driver, plan, sources)
    except KernelFailure as failure:
        raise BesideError(FIRST, failure.reason) from failure


def _file(driver: Driver, profile: str) -> Path:
    keys = {"blocks", "pairs", "stages", "row_us", "threads", "warmup_calls", "sandbox", "noise_runs", "confidence"}
    settings, pool = driver.harness.model_dump_json(include=keys), driver.pool
    machine = (socket.gethostname(), cpu.model(), str(cpu.cores()), pool.device, pool.enclosure)
    protocol = environment.sources_digest("evaluation/timing", "workers")
    key = digest("\0".join((driver.problem.digest, profile, *machine, settings, protocol)))[:32]
    return environment.host_folder() / "noise" / f"{key}.json"
