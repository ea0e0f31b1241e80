"""Select the kernel to change."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.scientist.proposals import Selection


@task(
    task_run_name="select {generation}",
    timeout_seconds=7200,  # the LLM client retries by itself
    cache_policy=NO_CACHE,  # depends on all kernels tried so far
)
def select_kernels(campaign: Campaign, generation: int) -> Selection:
    """Choose base and reference kernel."""
    return campaign.select(generation)
