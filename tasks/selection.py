"""Choose the kernel that the next experiments start from."""

from prefect import task

from kernel_scientist.campaign.steps import Experimenter
from kernel_scientist.scientist.proposals import Selection
from tasks import retries


@task(task_run_name="select a base for generation {generation}", **retries.PROVIDER)
def select(campaign: Experimenter, generation: int) -> Selection:
    """Choose base and reference kernel. Asks a model if the strategy is `scientist` and the selector is a model."""
    retries.pause(retries.provider_s(campaign.params.llm), campaign.stopped)
    return campaign.select(generation)
