"""Make a kernel: write it, repair it, or tune it."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel
from tasks import infrastructure_only
from tasks.timing import device


@task(
    task_run_name="write {job.name}",
    timeout_seconds=7200,  # the LLM client retries by itself and follows Retry-After
    cache_policy=NO_CACHE,  # the response cache stores replies; Prefect's cache would hide a changed catalogue
)
def write_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the job's kernel, or None when its source was tried already."""
    return campaign.write(job)


@task(task_run_name="repair {job.name}", timeout_seconds=7200, cache_policy=NO_CACHE)
def repair_kernel(campaign: Campaign, job: Job, failed: Trial) -> Kernel:
    """Return a repaired version of a kernel that failed; with the same source when there is no new version."""
    return campaign.repair(job, failed)


@task(
    task_run_name="tune {job.tuned_from}",
    retries=1,
    retry_delay_seconds=[5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=7200,
    cache_policy=NO_CACHE,  # times are valid only for their machine and moment
)
def tune_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the best other configuration of the job's kernel, or None when there was none to try."""
    return campaign.tune(job, lambda: device(campaign.context))
