"""One campaign: many experiments, a final, a confirmation.

    select -> design -> pick -> write -> compile -> check -> time -> record; the incumbent is tuned once per generation

The engine runs the experiments (`campaign.engine`). The campaign's state is the population in MLflow, so a flow that
was killed can be resumed.
"""

from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows import work_pool
from flows.progress import Progress
from kernel_scientist.campaign import champions, single, stopping
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine, Steps
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.job import Job
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population import final
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.report import summaries
from tasks.evaluation import steps_for
from tasks.experiment import tune_kernel

SEED_REMAINS = "correct on every case; the best seed remains champion, as no experiment beat it"


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    resumed = ["resumed"] if parameters.get("resume") else []
    return " ".join(["optimize", *(parameters.get("overrides") or []), *resumed])[:120]


@flow(name="optimize", flow_run_name=_run_name)
def optimize(overrides: list[str] | None = None, resume: bool | str = False, params_file: str | None = None) -> Any:
    """Run one campaign and confirm its champion; return the JSON of `kernel-scientist optimize`.

    `overrides` are `key.sub=value`. `resume`: continue the latest campaign (True) or a named one.
    """
    params = load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides or ())
    with evaluation_context(params, work_pool.connect) as context:
        campaign = Campaign(context, resume)
        progress = Progress(campaign)
        get_run_logger().info("campaign %s, MLflow run %s", campaign.name, campaign.run.run_id)
        try:
            with stopping.stoppable(context.evaluator.close) as check_stop:
                with progress.live_table():
                    Engine(campaign, steps(campaign), progress, check_stop).run()
                return _conclude(campaign, progress, params)
        except StoppedError:
            campaign.finish("KILLED")
            raise


def steps(campaign: Campaign) -> Steps:
    """Return the steps of an experiment as Prefect tasks."""
    context = campaign.context
    own = steps_for(context)

    def build(kernel: Kernel) -> Evaluation:
        base = campaign.population.get(kernel.base).evaluation if kernel.base else None
        if campaign.prescreen.most:
            return own.build(context, kernel, skip=partial(campaign.prescreen.skipped, kernel), base=base)
        return own.build(context, kernel, base=base)

    def time(kernel: Kernel, checked: Evaluation) -> Evaluation:
        timed = own.time(context, kernel, partial(campaign.time, kernel, checked), campaign.incumbent is not None)
        # profiling takes a minute or more, so only the incumbent, the base of the next kernels, is profiled
        return own.counted(context, kernel, timed) if campaign.incumbent == kernel else timed

    def tune(job: Job) -> Kernel | None:
        try:
            return tune_kernel(campaign, job)
        except InfrastructureError:
            return None  # tuning is optional: the campaign continues without it

    return Steps(
        build=build,
        time=time,
        tune=tune,
        record=campaign.record,
    )


def _conclude(campaign: Campaign, progress: Progress, params: Params) -> dict[str, Any]:
    """Run the final, confirm the champion, export and register it, close the campaign."""
    campaign.summarise(campaign.population.generations(), last=True)
    _final(campaign)
    progress.leaderboard()
    best, seed = campaign.champion(), campaign.population.best_seed()
    if best is None:
        campaign.finish()
        return summaries.campaign_summary(campaign, None)
    with champions.turn(campaign.context, best.kernel.language):
        return _confirmed(campaign, best, seed, params)


def _confirmed(campaign: Campaign, best: Trial, seed: Trial | None, params: Params) -> dict[str, Any]:
    others, baseline, own = [campaign.context.evaluator.reference()], None, steps_for(campaign.context)
    standing = champions.Standing.of(campaign.context, own.build)
    if standing is not None and not standing.is_same(best.kernel):
        others.append(TimedSource.of(standing.kernel))
    is_seed = best.kernel.base is None
    if not is_seed:
        others += [TimedSource.of(seed.kernel)] if seed else []
        baseline = seed.kernel.name if seed else REFERENCE
    confirmation = single.confirm_beside_bars(campaign.context, best.kernel, others, baseline, own)
    if is_seed and confirmation.confirmed:
        confirmation = confirmation.model_copy(update={"reason": SEED_REMAINS})
    summary = summaries.campaign_summary(campaign, confirmation)
    is_standing = campaign.insist(partial(summaries.export_champion, campaign, confirmation, standing, summary))
    if confirmation.confirmed and params.tracking.register_champion:
        model = f"{campaign.context.problem.slug}-{best.kernel.language}-{campaign.context.target.name}"
        campaign.insist(partial(campaign.store.register, campaign.run, best.kernel, model, is_standing))
    campaign.finish()
    return summary


def _final(campaign: Campaign) -> None:
    """Time the finalists against each other in one run, if there are several; its winner is the champion."""
    finalists = final.finalists(campaign.population, campaign.params.validate_.finalists)
    if len(finalists) < 2:
        return
    incumbent, others = finalists[0], [TimedSource.of(t.kernel) for t in finalists[1:]]
    evaluator = campaign.context.evaluator
    against = [evaluator.reference(), *reversed(others)]  # last: the strongest, which decides when to stop
    measure = partial(evaluator.time, incumbent.kernel, incumbent.evaluation, against)
    try:
        evaluation = steps_for(campaign.context).time(campaign.context, incumbent.kernel, measure)
    except InfrastructureError as error:
        evaluation = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
    campaign.final = final.Final.of(incumbent.kernel.name, evaluation)
    campaign.insist(partial(campaign.store.log_final, campaign.run, campaign.final))
