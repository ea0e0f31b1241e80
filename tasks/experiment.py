"""Tune a campaign's kernels.

Calls to models are no tasks, as their client retries them and caches replies. Nor is recording: MLflow's client retries
its requests, and a Prefect task run costs as much CPU time as half of the MLflow run.
"""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.steps import device
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
