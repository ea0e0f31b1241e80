"""Check a kernel for correctness."""

from typing import Any

from prefect import task
from prefect.cache_policies import CacheKeyFnPolicy

from kernel_scientist.campaign.evaluation_context import EvaluationContext, cache_key
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel
from tasks import infrastructure_only


def _key(_context: Any, arguments: dict[str, Any]) -> str | None:
    if arguments.get("cases") is not None:
        return None  # confirmation never uses cached results
    return cache_key(arguments["context"], arguments["kernel"], "check")


@task(
    task_run_name="check {kernel.name}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=1800,
    cache_policy=CacheKeyFnPolicy(cache_key_fn=_key),
    result_serializer="json",
)
def check_kernel(
    context: EvaluationContext, kernel: Kernel, so_far: Evaluation, cases: tuple[Case, ...] | None = None
) -> Evaluation:
    """Run every checking case in a sandboxed worker and compare the outputs with the reference's."""
    return context.evaluator.check(kernel, so_far, cases)
