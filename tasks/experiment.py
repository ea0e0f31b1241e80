"""Select, design, write, repair, tune and log a campaign's kernels, and summarise what was learnt."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.scientist.proposals import Design, Selection
from tasks.evaluation import device, infrastructure_only

MODEL_S = 7200
"""Timeout of a step that calls models: the LLM client retries by itself and follows Retry-After."""

# Nothing is cached: steps depend on all kernels tried so far, and the response cache stores replies already.


@task(task_run_name="select {generation}", timeout_seconds=MODEL_S, cache_policy=NO_CACHE)
def select_kernels(campaign: Campaign, generation: int) -> Selection:
    """Choose base and reference kernel."""
    return campaign.select(generation)


@task(task_run_name="design {generation} on {selection.base}", timeout_seconds=MODEL_S, cache_policy=NO_CACHE)
def design_experiments(campaign: Campaign, selection: Selection, generation: int) -> Design:
    """List avenues and plans for the base."""
    return campaign.design(selection, generation)


@task(task_run_name="summarise findings", timeout_seconds=MODEL_S, cache_policy=NO_CACHE)
def summarise_findings(campaign: Campaign, generation: int, last: bool = False) -> None:
    """Summarise what was learnt, every `knowledge.distil_every` generations."""
    campaign.summarise(generation, last)


@task(task_run_name="write {job.name}", timeout_seconds=MODEL_S, cache_policy=NO_CACHE)
def write_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the job's kernel, or None when its source was tried already."""
    return campaign.write(job)


@task(task_run_name="repair {job.name}", timeout_seconds=MODEL_S, cache_policy=NO_CACHE)
def repair_kernel(campaign: Campaign, job: Job, failed: Trial) -> Kernel:
    """Return a repaired version of a kernel that failed; with the same source when there is no new version."""
    return campaign.repair(job, failed)


@task(
    task_run_name="tune {job.tuned_from}",
    retries=1,
    retry_delay_seconds=[5],
    retry_condition_fn=infrastructure_only,
    timeout_seconds=MODEL_S,
    cache_policy=NO_CACHE,
)
def tune_kernel(campaign: Campaign, job: Job) -> Kernel | None:
    """Return the best other configuration of the job's kernel, or None when there was none to try."""
    return campaign.tune(job, lambda: device(campaign.context))


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
