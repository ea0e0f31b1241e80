"""Record kernels in the MLflow store, as many at a time as are ready."""

from collections.abc import Sequence

from prefect import task

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.records.evaluation import Trial
from tasks import retries


@task(task_run_name="record {names}", **retries.STORE)
def record(campaign: Campaign, trials: Sequence[Trial], names: str) -> None:
    """Write kernels as MLflow runs. A store that stays away is waited for by the campaign (`Campaign.insist`).

    `names`: the kernels' names, as far as they fit into the name of a task.
    """
    retries.pause(retries.STORE_S, campaign.stopped)
    campaign.store_kernels(trials)
