"""Compile a kernel."""

from typing import Any

from prefect import task
from prefect.cache_policies import CacheKeyFnPolicy

from kernel_scientist.campaign.evaluation_context import EvaluationContext, cache_key
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from tasks import infrastructure_only


def _key(_context: Any, arguments: dict[str, Any]) -> str:
    return cache_key(arguments["context"], arguments["kernel"], "compile")


@task(
    task_run_name="compile {kernel.name}",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=600,
    cache_policy=CacheKeyFnPolicy(cache_key_fn=_key),
    result_serializer="json",
)
def compile_kernel(context: EvaluationContext, kernel: Kernel) -> Evaluation:
    """Import the kernel's file in a worker and build its extensions."""
    return context.evaluator.compile(kernel)
