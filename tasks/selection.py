"""Which kernel to change."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign import Campaign
from kernel_scientist.scientist.mind import Selection
from tasks import infrastructure_only


@task(
    task_run_name="select",
    retries=3,
    retry_delay_seconds=[2, 8, 30],
    retry_jitter_factor=0.5,
    retry_condition_fn=infrastructure_only,
    timeout_seconds=600,
    cache_policy=NO_CACHE,  # depends on everything tried so far
)
def select_kernels(campaign: Campaign) -> Selection:
    """Choose base and reference kernel."""
    return campaign.select()
