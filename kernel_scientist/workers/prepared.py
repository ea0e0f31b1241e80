"""The worker pool for a problem and target. It can be started ahead of the flow that uses it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.params import Params
from kernel_scientist.workers.worker_pool import WorkerPool

_ahead: list[tuple[Params, WorkerPool]] = []
"""The pool that was started ahead, with its parameters, until it is used."""


def pool(params: Params, problem: Problem, address: Address) -> WorkerPool:
    """Return the pool for these parameters: the one started ahead, otherwise a new one. The caller closes it."""
    if _ahead and _ahead[-1][0] == params:
        return _ahead.pop()[1]
    harness, gpu = params.harness, address.gpu
    if params.language == "triton" and address.device == "cpu" and gpu is None:
        gpu = gpus.MI300X
    if gpu is None or not gpu.arch.startswith("gfx"):
        return WorkerPool(harness, address.device, kernel_threads=problem.policy.threads)
    machine = simulated(problem, gpu, harness.threads)
    slow = max(harness.call_timeout_s, harness.executed_timeout_s)  # a call is executed on this host's cores
    harness = harness.model_copy(update={"call_timeout_s": slow})
    return WorkerPool(harness, address.device, machine=machine, kernel_threads=problem.policy.threads)


@contextmanager
def started_ahead(params: Params, problem: Problem, address: Address) -> Generator[None]:
    """Start the pool now: its fork server imports torch while this process imports other things."""
    if address.remote:  # another machine's workers
        yield
        return
    with pool(params, problem, address) as started:
        _ahead.append((params, started))
        try:
            yield
        finally:
            _ahead.clear()


def simulated(problem: Problem, gpu: Gpu, threads: int = 0) -> dict[str, Any]:
    """Return the settings of the machine that executes code for AMD's GPUs in workers.

    `threads`: of the machine; 0: one per core. Raises SetupError if the machine cannot be built.
    """
    from kernel_scientist.gpu.capture import inspect
    from kernel_scientist.gpu.machine import build
    from kernel_scientist.gpu.machine.host import library as stand_in

    made = build.build(environment.cache_folder() / "machine")
    return {
        "facts": asdict(inspect.facts(gpu)),
        "writes": problem.writes,
        "updates": problem.updates,
        "library": str(made),
        "stand_in": stand_in.found(),
        "threads": threads or len(os.sched_getaffinity(0)),
    }
