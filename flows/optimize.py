"""One campaign: many experiments, a final, a confirmation.

    select -> design -> pick -> write -> compile -> check -> time -> record; the incumbent is tuned once per generation

The engine runs the experiments (`campaign.engine`). The campaign's state is the population in MLflow, so a flow that
was killed can be resumed.
"""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from prefect import flow
from prefect.exceptions import TerminationSignal
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.utilities.urls import url_for

from flows import promotion, server, watching, work_pool
from flows.form import UNTOUCHED, Form, subject
from flows.progress import Progress
from kernel_scientist.agents import beside
from kernel_scientist.agents.work import Settings
from kernel_scientist.campaign import agent_command, champions, conclusion, ending, outlook, resuming, single, stopping
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.steps import infrastructure_as_verdict
from kernel_scientist.campaign.steps import progress as say
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population import final
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.errors import StoppedError, one_line
from kernel_scientist.records.evaluation import Confirmation, Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.records.text import number_of
from tasks.chain import Chain

SEED_REMAINS = "the best seed remains champion, as no experiment beat it"
CHAMPION_REMAINS = "it is the champion with which this campaign started, as no experiment beat it"


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    resume = parameters.get("resume")
    resumed = f", {resume} resumed" if isinstance(resume, str) and resume else ", resumed" if resume else ""
    return f"optimize {subject(parameters)}{resumed}"[:120]


@flow(name="optimize", flow_run_name=_run_name)
def optimize(
    params: Form = UNTOUCHED,
    overrides: list[str] | None = None,
    resume: bool | str = False,
    params_file: str | None = None,
) -> CampaignResult:
    """Run one campaign and confirm its champion; return the result of `kernel-scientist optimize`.

    Args:
        params: Parameters that take precedence over params.yaml.
        overrides: The same as `key.sub=value`.
        resume: Continue the latest campaign of the problem, language and target (true), or the one with this id.
        params_file: Another params.yaml.
    """
    given = params.overrides(overrides)
    settings = load(params_file, given)
    outlook.require(settings, resume)
    try:
        return _run(settings, Settings(tuple(given), params_file), resume)
    except StoppedError:
        if server.is_worker_s():
            server.end_by_signal()
        raise
    except (KeyboardInterrupt, TerminationSignal) as interrupt:
        if server.is_worker_s():  # Prefect knows whether it is a cancellation
            raise
        raise StoppedError(stopping.why()) from interrupt  # Prefect would say that the run crashed


def _run(settings: Params, given: Settings, resume: bool | str) -> CampaignResult:
    """Run one campaign; return its result. `given`: where its settings come from, for the server at an agent's side.

    Raises StoppedError once a signal asked for the end.
    """
    say.info("preparing worker processes and the controls of %s, usually 10 s", settings.problem)
    with (
        evaluation_context(settings, Chain(), work_pool.connect) as context,
        ExitStack() as keeping,
        ExitStack() as signals,
    ):
        if settings.search.agent:
            say.warning("%s", agent_command.UNPRICED)
            if not settings.search.hide_shapes:  # its tools tell the cases
                context = replace(context, mcp=keeping.enter_context(beside.served(given, settings.problem)))
        say.info("opening the MLflow store, usually 5 s; a new one takes 20 s")
        resuming.opened(settings, context.problem, context.address)  # ahead, as it takes long: a signal ends it at once
        check_stop = signals.enter_context(stopping.stoppable(context.target.close))
        campaign = Campaign(context, resume, url_for("flow-run", flow_run.get_id()) or "")
        stopping.began(f"logged kernels are kept: continue with `{ending.command(campaign.run)}`")
        keeping.enter_context(watching.kept(campaign))
        progress = Progress(campaign)
        get_run_logger().info("campaign %s, MLflow run %s", campaign.name, campaign.run.run_id)
        _say_what_comes(campaign)
        try:
            check_stop()
            promotion.complete(campaign, progress)
            with progress.live_table():
                Engine(campaign, progress.step, progress.done, check_stop).run()
            campaign.plan.end()
            if found := campaign.insist(partial(conclusion.recorded, campaign)):
                campaign.final = promotion.recorded_final(campaign)
                campaign.finish()
                return found
            campaign.summarise(campaign.population.generations(), last=True)
            _final(campaign)
            progress.leaderboard()
            with ExitStack() as turn:
                turn.enter_context(champions.turn(context))
                confirmed = _confirmed(campaign)
                signals.close()  # what follows may wait for a person's answer, which the next signal interrupts
                return promotion.concluded(campaign, progress, *confirmed, turn)
        except (StoppedError, KeyboardInterrupt, TerminationSignal):
            campaign.finish("KILLED", stopping.why())
            get_run_logger().info("stopped; recorded kernels are kept, a run with resume=%s goes on", campaign.name)
            raise
        except Exception as error:
            campaign.finish("FAILED", f"it failed: {one_line(error)}")
            raise


def _say_what_comes(campaign: Campaign) -> None:
    """Say what is done before the next kernel is shown, which takes a minute or more."""
    left = campaign.plan.planned - len(campaign.population)
    if (first := min(left, len(campaign.beginning.jobs(campaign.population)))) > 0:
        which = "the other first" if len(campaign.population) else "the first"
        say.info("compiling, checking and timing %s %s, usually a minute", which, number_of(first, "kernel"))
    elif not campaign.plan.over():
        say.info("going on with the experiments: at most %s", number_of(left, "kernel"))


def _confirmed(campaign: Campaign) -> tuple[Confirmation | None, Trial | None]:
    """Confirm the champion, if there is one, beside the standing one, which is returned as well."""
    best, seed = campaign.champion(), campaign.population.best_seed()
    if best is None:
        return None, None
    others, baseline = [campaign.context.target.reference()], None
    standing = champions.standing(campaign.context)
    if standing and standing.evaluation.verdict is Verdict.OK and not champions.is_same(standing, best):
        others.append(TimedSource.of(standing.kernel))
    if not best.kernel.is_seed:
        others += [TimedSource.of(seed.kernel)] if seed else []
        baseline = seed.kernel.name if seed else REFERENCE
    confirmation = single.confirm_beside_bars(campaign.context, best.kernel, others, baseline)
    if best.kernel.base is None and confirmation.confirmed:
        remains = SEED_REMAINS if best.kernel.is_seed else CHAMPION_REMAINS
        confirmation = confirmation.model_copy(update={"reason": f"{confirmation.reason}; {remains}"})
    return confirmation, standing


def _final(campaign: Campaign) -> None:
    """Time the finalists against each other in one run, if there are several; its winner is the champion."""
    finalists = final.finalists(campaign.population, campaign.params.validate_.finalists)
    if len(finalists) < 2:
        return
    incumbent = finalists[0]
    others = [TimedSource.of(t.kernel).model_copy(update={"is_finalist": True}) for t in finalists[1:]]
    target = campaign.context.target
    against = [target.reference(), *reversed(others)]  # last: the strongest, which decides when to stop
    timing = partial(target.time, incumbent.kernel, incumbent.evaluation, against)
    measure = partial(single.when_quiet, campaign.context, timing)
    names = ", ".join(trial.kernel.name for trial in finalists)
    say.info("final: timing %s and the reference beside each other, usually a minute or two", names)
    title = f"final: time {names} beside each other"
    timed = partial(campaign.context.steps.time, campaign.context, incumbent.kernel, measure, title)
    evaluation: Evaluation = infrastructure_as_verdict(timed)()
    campaign.final = final.Final.of(incumbent.kernel.name, evaluation, len(campaign.population))
    campaign.insist(partial(campaign.store.log_final, campaign.run, campaign.final))
