"""Time and profile kernels, one at a time per device: all processes of a host share a lock on the device.

A Prefect concurrency limit is not used in addition: see docs/decisions/0003-one-lock-per-device.md.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.evaluate import confirmation
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.profile import counting
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.sandbox import device_lock
from tasks import infrastructure_only


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
def time_kernel(
    context: EvaluationContext, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource]
) -> Evaluation:
    """Time a kernel interleaved with others while the device is locked."""
    with device(context):
        return context.evaluator.time(kernel, so_far, against)


@task(
    task_run_name="time {kernel.name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,
)
def time_candidate(campaign: Campaign, kernel: Kernel, so_far: Evaluation) -> Evaluation:
    """Time a campaign's kernel against the reference and the incumbent while the device is locked."""
    with device(campaign.context):
        return campaign.time(kernel, so_far)


@task(
    task_run_name="confirm {sources[0].name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,
)
def confirm_once(context: EvaluationContext, sources: Sequence[TimedSource], blocks: int) -> confirmation.Measurement:
    """Time a champion (the first source) and others in a fresh set of processes on public and held-out cases."""
    with device(context):
        return confirmation.measure(context.evaluator, sources, blocks)


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
