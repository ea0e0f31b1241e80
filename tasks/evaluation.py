"""The steps of evaluating a kernel as Prefect tasks.

Calls to models are no tasks, as their client retries them and caches replies. Nor is recording: MLflow's client retries
its requests, and a Prefect task run costs as much CPU time as half of the MLflow run.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE, CacheKeyFnPolicy
from prefect.transactions import get_transaction
from prefect.utilities.annotations import quote

from kernel_scientist.campaign import steps
from kernel_scientist.campaign.evaluation_context import EvaluationContext, cache_key
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict, digest
from tasks import approval

PASSING = (Verdict.TIMEOUT, Verdict.CRASHED, Verdict.INFRASTRUCTURE)
"""Verdicts that may have their cause in the state of the machine: they are never served from a cache."""


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Retry infrastructure errors only, never a kernel that fails.

    A plain function: Prefect silently ignores other callables as `retry_condition_fn`.
    """
    try:
        state.result()
    except BaseException as error:
        return isinstance(error, InfrastructureError)
    return False


def _build_key(_run: Any, arguments: dict[str, Any]) -> str | None:
    """Return the cache key of a build, which depends on kernel, base, problem and toolchain; None: it is not cached.

    Confirmation never uses cached results, and a kernel may be skipped because of others.
    """
    if arguments.get("cases") is not None or arguments.get("skip") is not None:
        return None
    base: Evaluation | None = arguments.get("base")
    codes = [code.digest for code in base.compile.objects] if base is not None and base.compile is not None else []
    return cache_key(arguments["context"], arguments["kernel"], "build") + (digest(repr(codes)) if codes else "")


def _build(
    context: EvaluationContext,
    kernel: Kernel,
    cases: tuple[Case, ...] | None = None,
    skip: steps.Skip | None = None,
    base: Evaluation | None = None,
) -> Evaluation:
    """Build a kernel (see `steps.build_kernel`); do not cache a result that may come from the state of the machine."""
    evaluation = steps.build_kernel(context, kernel, cases, skip, base)
    if evaluation.verdict in PASSING and (transaction := get_transaction()) is not None:
        transaction.write_on_commit = False
    return evaluation


build_kernel = task(
    task_run_name="build {kernel.name}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=2400,
    cache_policy=CacheKeyFnPolicy(cache_key_fn=_build_key),
    result_serializer="json",
)(_build)

time_kernel = task(
    task_run_name="time {kernel.name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=4 * 3600,  # a leaderboard may take kernelbot.timeout_s for each of three sources
    cache_policy=NO_CACHE,  # times are valid only for their machine and moment
)(steps.time_kernel)

count_kernel = task(
    task_run_name="count {kernel.name}",
    timeout_seconds=1800,  # includes waiting for the device; harness.counters_timeout_s limits the profiling
    cache_policy=NO_CACHE,  # counters belong to the times of the same run
)(steps.count_kernel)

tune_kernel = task(
    task_run_name="tune {kernel.name}",
    retries=1,
    retry_delay_seconds=[5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=7200,
    cache_policy=NO_CACHE,
)(steps.tune_kernel)


def called(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a task as a function that raises InfrastructureError if the task takes too long.

    Prefect does not search the arguments for futures of other tasks. They hold whole records: the search took half of
    the CPU time of a task run.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return step(*map(quote, arguments), **{name: quote(value) for name, value in named.items()})
        except TimeoutError as error:
            raise InfrastructureError(f"a step took too long: {error}") from error

    return call


TASKS = steps.Steps(*map(called, (build_kernel, time_kernel, count_kernel, tune_kernel)), approve=approval.ask)
POOL = replace(TASKS, build=steps.build_kernel, time=steps.time_kernel, count=steps.count_kernel)
"""The steps of a campaign on a pool, where a kernel is a flow run of its own, and hosts retry."""
