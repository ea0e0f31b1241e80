"""Search a kernel's numbers."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.records.kernel import Kernel
from tasks import infrastructure_only
from tasks.timing import device


@task(
    task_run_name="tune {job.tuned_from}",
    retries=1,
    retry_delay_seconds=[5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=7200,
    cache_policy=NO_CACHE,  # times belong to their minute and their machine
)
def tune_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the best other configuration of the job's kernel, or None when there was none to try."""
    return campaign.tune(job, lambda: device(campaign.lab))
