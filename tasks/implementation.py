"""Carry an experiment out."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign import Campaign, Job
from kernel_scientist.records import Kernel
from tasks import infrastructure_only


@task(
    task_run_name="write {job.name}",
    retries=3,
    retry_delay_seconds=[2, 8, 30],
    retry_jitter_factor=0.5,
    retry_condition_fn=infrastructure_only,
    timeout_seconds=1200,
    cache_policy=NO_CACHE,  # a mind keeps its own replies; Prefect's cache would hide a changed catalogue
)
def write_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the job's kernel, or None when its source was tried already."""
    return campaign.write(job)
