"""Compile, check, time and profile kernels.

Timings and profiles run one at a time per device: all processes of a host share a lock on the device. A Prefect
concurrency limit is not used in addition: see docs/decisions/0003-one-lock-per-device.md.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE, CacheKeyFnPolicy

from kernel_scientist.campaign.evaluation_context import EvaluationContext, cache_key
from kernel_scientist.profile import counting
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.sandbox import device_lock

Measured = TypeVar("Measured")


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Retry infrastructure errors only, never a kernel that fails.

    A plain function: Prefect silently ignores other callables as `retry_condition_fn`.
    """
    try:
        state.result()
    except BaseException as error:
        return isinstance(error, InfrastructureError)
    return False


def _cached(step: str) -> CacheKeyFnPolicy:
    """Return the cache policy of a step whose result depends on kernel, problem and toolchain only."""

    def key(_run: Any, arguments: dict[str, Any]) -> str | None:
        if arguments.get("cases") is not None:
            return None  # confirmation never uses cached results
        return cache_key(arguments["context"], arguments["kernel"], step)

    return CacheKeyFnPolicy(cache_key_fn=key)


@task(
    task_run_name="compile {kernel.name}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=600,
    cache_policy=_cached("compile"),
    result_serializer="json",
)
def compile_kernel(context: EvaluationContext, kernel: Kernel) -> Evaluation:
    """Import the kernel's file in a worker and build its extensions."""
    return context.evaluator.compile(kernel)


@task(
    task_run_name="check {kernel.name}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=1800,
    cache_policy=_cached("check"),
    result_serializer="json",
)
def check_kernel(
    context: EvaluationContext, kernel: Kernel, so_far: Evaluation, cases: tuple[Case, ...] | None = None
) -> Evaluation:
    """Run every checking case in a sandboxed worker and compare the outputs with the reference's."""
    return context.evaluator.check(kernel, so_far, cases)


def device(context: EvaluationContext) -> AbstractContextManager[None]:
    """Lock the target's device; a model target has none. Raises DeviceBusyError after `harness.device_wait_s`."""
    if context.target.model is not None:
        return nullcontext()
    return device_lock.device(context.target.lock, context.params.harness.device_wait_s)


@task(
    task_run_name="time {kernel.name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,  # times are valid only for their machine and moment
)
def time_kernel(context: EvaluationContext, kernel: Kernel, measure: Callable[[], Measured]) -> Measured:
    """Return what `measure` returns, which times a kernel and others while the device is locked."""
    with device(context):
        return measure()


@task(
    task_run_name="count {kernel.name}",
    timeout_seconds=1800,  # includes waiting for the device; harness.counters_timeout_s limits the profiling
    cache_policy=NO_CACHE,  # counters belong to the times of the same run
)
def count_kernel(context: EvaluationContext, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add the GPU's hardware counters to an evaluation, or the reason why there are none."""
    try:
        with device(context):
            return counting.count(context.evaluator, kernel, timed)
    except InfrastructureError as error:  # counters are optional: no retry
        return counting.without(timed, str(error))


def counted(context: EvaluationContext, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add hardware counters to the evaluation of a kernel that was timed on a GPU; return others unchanged."""
    return count_kernel(context, kernel, timed) if counting.wanted(context.evaluator, timed) else timed
