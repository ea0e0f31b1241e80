"""The worker pool for a problem and target. It can be started ahead of the flow that uses it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.params import Params
from kernel_scientist.workers.pool import WorkerPool

_ahead: list[tuple[Params, WorkerPool]] = []
"""The pool that was started ahead, with its parameters, until it is used."""


def pool(params: Params, problem: Problem, target: Target) -> WorkerPool:
    """Return the pool for these parameters: the one started ahead, otherwise a new one. The caller closes it."""
    if _ahead and _ahead[-1][0] == params:
        return _ahead.pop()[1]
    interpreted = params.language == "triton" and target.device == "cpu"
    preload = ("kernel_scientist.gpu.interpreter.worker_setup",) if interpreted else ()
    interpreter = _interpreter(problem, target) if interpreted else None
    return WorkerPool(params.harness, target.device, preload, interpreter, problem.policy.threads)


@contextmanager
def started_ahead(params: Params, problem: Problem, target: Target) -> Generator[None]:
    """Start the pool now: its fork server imports torch while this process imports other things."""
    if target.pool:  # another machine's workers
        yield
        return
    with pool(params, problem, target) as started:
        _ahead.append((params, started))
        try:
            yield
        finally:
            _ahead.clear()


def _interpreter(problem: Problem, target: Target) -> dict[str, Any]:
    """Return the settings of Triton's interpreter in the workers."""
    from kernel_scientist.gpu.capture import inspect

    facts = asdict(inspect.facts(target.model)) if target.model else None
    return {"facts": facts, "writes": problem.writes}
