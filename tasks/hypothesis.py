"""Design experiments and summarise findings."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.scientist.proposals import Design, Selection


@task(
    task_run_name="design {generation} on {selection.base}",
    timeout_seconds=7200,  # the LLM client retries by itself
    cache_policy=NO_CACHE,  # depends on all kernels tried so far
)
def design_experiments(campaign: Campaign, selection: Selection, generation: int) -> Design:
    """List avenues and plans for the base."""
    return campaign.design(selection, generation)


@task(task_run_name="summarise findings", timeout_seconds=7200, cache_policy=NO_CACHE)
def summarise_findings(campaign: Campaign, generation: int, last: bool = False) -> None:
    """Summarise what was learnt, every `knowledge.distil_every` generations."""
    campaign.summarise(generation, last)
