"""Tune and record a campaign's kernels. Calls to models are no tasks: their client retries them and caches replies."""

from collections.abc import Sequence

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.steps import device
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel
from tasks.evaluation import infrastructure_only


@task(
    task_run_name="tune {job.tuned_from}",
    retries=1,
    retry_delay_seconds=[5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=7200,
    cache_policy=NO_CACHE,
)
def tune_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the best other configuration of the job's kernel, or None when there was none to try."""
    return campaign.tune(job, lambda: device(campaign.context))


@task(
    task_run_name="record {trials[0].kernel.name}",
    retries=5,
    retry_delay_seconds=[1, 2, 5, 15, 30],  # the server may be restarting; recording twice is harmless
    timeout_seconds=600,
    cache_policy=NO_CACHE,
)
def record_kernels(campaign: Campaign, trials: Sequence[Trial]) -> None:
    """Write kernels as MLflow runs and add them to the population."""
    campaign.recorder.record(trials, campaign.plan.elapsed_s)
