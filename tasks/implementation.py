"""Carry an experiment out."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel


@task(
    task_run_name="write {job.name}",
    timeout_seconds=7200,  # whoever asks a model retries by itself, and honours what its server says
    cache_policy=NO_CACHE,  # a mind keeps its own replies; Prefect's cache would hide a changed catalogue
)
def write_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the job's kernel, or None when its source was tried already."""
    return campaign.write(job)


@task(
    task_run_name="repair {job.name}",
    timeout_seconds=7200,
    cache_policy=NO_CACHE,
)
def repair_kernel(campaign: Campaign, job: Job, failed: Trial) -> Kernel:
    """Return a mended version of a kernel that failed; with the same source when nothing new comes."""
    return campaign.repair(job, failed)
