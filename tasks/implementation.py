"""Implement an experiment: write a kernel, repair one that failed."""

from prefect import task

from kernel_scientist.campaign.ledger import Job
from kernel_scientist.campaign.steps import Experimenter
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist.proposals import Draft
from tasks import retries


@task(task_run_name="write {job.name}: {job.title}", **retries.PROVIDER)
def write(campaign: Experimenter, job: Job) -> Draft:
    """Return the writer's draft. Budget, cache and replay are inside."""
    retries.pause(retries.provider_s(campaign.params.llm), campaign.stopped)
    return campaign.draft(job)


@task(task_run_name="repair {job.name}: {failed.evaluation.verdict.value}", **retries.PROVIDER)
def repair(campaign: Experimenter, job: Job, failed: Trial) -> Draft | None:
    """Return the repairer's draft; None if the agent of this role does not repair."""
    retries.pause(retries.provider_s(campaign.params.llm), campaign.stopped)
    return campaign.redraft(job, failed)
