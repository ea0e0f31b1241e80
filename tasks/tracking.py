"""Log a kernel to MLflow."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.records.evaluation import Trial


@task(
    task_run_name="log {trial.kernel.name}",
    retries=5,
    retry_delay_seconds=[1, 2, 5, 15, 30],  # the server may be restarting; logging twice is harmless
    timeout_seconds=300,
    cache_policy=NO_CACHE,
)
def log_trial(campaign: Campaign, trial: Trial) -> None:
    """Write one kernel as an MLflow run and add it to the population."""
    campaign.record(trial)
