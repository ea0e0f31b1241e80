"""What to try on it."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign import Campaign
from kernel_scientist.scientist.mind import Design, Selection
from tasks import infrastructure_only


@task(
    task_run_name="design on {selection.base}",
    retries=3,
    retry_delay_seconds=[2, 8, 30],
    retry_jitter_factor=0.5,
    retry_condition_fn=infrastructure_only,
    timeout_seconds=600,
    cache_policy=NO_CACHE,  # depends on everything tried so far
)
def design_experiments(campaign: Campaign, selection: Selection) -> Design:
    """List avenues and plans for the base."""
    return campaign.design(selection)
