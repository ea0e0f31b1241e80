"""Time a kernel: one timing at a time per device, by a lock that every process on the host shares.

Not by a Prefect concurrency limit as well: see docs/decisions/0003-one-lock-per-device.md.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.evaluate import confirmation
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.sandbox import device_lock
from tasks import infrastructure_only


def device(lab: EvaluationContext) -> AbstractContextManager[None]:
    """Hold the laboratory's device; a model needs none. Raises DeviceBusyError after `harness.device_wait_s`."""
    if lab.target.model is not None:
        return nullcontext()
    return device_lock.device(lab.target.lock, lab.params.harness.device_wait_s)


@task(
    task_run_name="time {kernel.name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,  # a time belongs to its minute and its machine
)
def time_kernel(
    lab: EvaluationContext, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource]
) -> Evaluation:
    """Time a kernel interleaved with others, alone on the device."""
    with device(lab):
        return lab.evaluator.time(kernel, so_far, against)


@task(
    task_run_name="time {kernel.name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,
)
def time_candidate(campaign: Campaign, kernel: Kernel, so_far: Evaluation) -> Evaluation:
    """Time a campaign's kernel beside the reference and the incumbent, alone on the device."""
    with device(campaign.lab):
        return campaign.time(kernel, so_far)


@task(
    task_run_name="confirm {contestants[0].name}",
    retries=2,
    retry_delay_seconds=[5, 20],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=3600,
    cache_policy=NO_CACHE,
)
def confirm_once(lab: EvaluationContext, contestants: Sequence[TimedSource], blocks: int) -> confirmation.Measured:
    """Time a champion and its rivals in a fresh set of processes on public and held-out cases."""
    with device(lab):
        return confirmation.measure(lab.evaluator, contestants, blocks)
