"""Record kernels in the MLflow store, as many at a time as are ready."""

from collections.abc import Sequence

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.steps import Experimenter
from kernel_scientist.records.evaluation import Trial


@task(task_run_name="record {names}", cache_policy=NO_CACHE)
def record(campaign: Experimenter, trials: Sequence[Trial], names: str) -> None:
    """Write kernels as MLflow runs. The campaign waits for a store that is away, so there are no retries here.

    `names`: the kernels' names, as far as they fit into the name of a task.
    """
    campaign.store_kernels(trials)
