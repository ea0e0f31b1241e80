"""State hypotheses: design the experiments of a generation, summarise what earlier ones have shown."""

from prefect import task

from kernel_scientist.campaign.steps import Experimenter
from kernel_scientist.scientist.proposals import Design, Lessons, Selection
from tasks import retries


@task(task_run_name="design {generation} on {selection.base}", **retries.PROVIDER)
def design(campaign: Experimenter, generation: int, selection: Selection) -> Design:
    """List avenues and experiment plans for the base."""
    retries.pause(retries.provider_s(campaign.params.llm), campaign.stopped)
    return campaign.design(generation, selection)


@task(task_run_name="summarise the findings up to generation {generation}", **retries.PROVIDER)
def summarise(campaign: Experimenter, generation: int) -> Lessons:
    """Return the findings, the new ones added."""
    retries.pause(retries.provider_s(campaign.params.llm), campaign.stopped)
    return campaign.distil(generation)
