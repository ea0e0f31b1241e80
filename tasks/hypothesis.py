"""What to try on it."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.scientist.roles import Design, Selection


@task(
    task_run_name="design {generation} on {selection.base}",
    timeout_seconds=7200,  # whoever asks a model retries by itself
    cache_policy=NO_CACHE,  # depends on everything tried so far
)
def design_experiments(campaign: Campaign, selection: Selection, generation: int) -> Design:
    """List avenues and plans for the base."""
    return campaign.design(selection, generation)


@task(task_run_name="distil", timeout_seconds=7200, cache_policy=NO_CACHE)
def distil_findings(campaign: Campaign, generation: int, last: bool = False) -> None:
    """Write down what was learnt, when it is time to."""
    campaign.distil(generation, last)
