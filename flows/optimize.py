"""One campaign: many experiments, a final, a confirmation.

    select -> design -> pick -> write -> compile -> check -> time -> log; the incumbent is tuned once per generation

Up to `search.concurrency` experiments run at the same time, each in a thread; there is no barrier between generations.
The campaign's state is the population in MLflow, so a flow that was killed can be resumed.
"""

import contextvars
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from prefect import flow
from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows.progress import Progress
from flows.validate import confirm
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population import final
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BudgetError, InfrastructureError, StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.report import summaries
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.workers.pool import WorkerPool
from tasks.evaluation import check_kernel, compile_kernel, counted, time_kernel
from tasks.experiment import (
    design_experiments,
    log_trial,
    repair_kernel,
    select_kernels,
    summarise_findings,
    tune_kernel,
    write_kernel,
)

POLL_S = 0.5
"""Interval at which signals are checked, in seconds."""


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
    with evaluation_context(params) as context:
        campaign = Campaign(context, resume)
        progress = Progress(campaign)
        get_run_logger().info("campaign %s, MLflow run %s", campaign.name, campaign.run.run_id)
        try:
            with _stoppable(context.evaluator.pool) as check_stop:
                with progress.live_table():
                    _search(campaign, progress, check_stop)
                return _conclude(campaign, progress, params)
        except StoppedError:
            campaign.finish("KILLED")
            raise


def _search(campaign: Campaign, progress: Progress, check_stop: Callable[[], None]) -> None:
    """Start experiments until the budget or the plan is used up."""
    queue: deque[Job] = deque(campaign.seed_jobs())
    seeds = {job.name for job in queue}
    running: dict[Future[None], Job] = {}
    concurrency = campaign.params.search.concurrency
    without_jobs = 0  # designs in a row that gave no new experiment
    with ThreadPoolExecutor(concurrency, thread_name_prefix="experiment") as pool:
        try:
            while True:
                check_stop()
                if campaign.late():  # running experiments may finish; no new ones start
                    while queue:
                        campaign.drop(queue.pop())
                while len(running) < concurrency and queue:
                    job = queue.popleft()
                    # in a copy of the flow's context, so that the experiment's tasks belong to this flow run
                    running[pool.submit(contextvars.copy_context().run, _experiment, campaign, progress, job)] = job
                seeds_done = not (seeds & {j.name for j in running.values()})
                if len(running) < concurrency and not queue and seeds_done:
                    queue.extend(campaign.tuning_jobs())
                    if campaign.over() is None and without_jobs < 3:
                        jobs = _next_jobs(campaign)
                        queue.extend(jobs)
                        without_jobs = 0 if jobs else without_jobs + 1
                    if queue:
                        continue
                if not running:
                    return
                for future in wait(running, POLL_S, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    future.result()
                    without_jobs = 0
        except BaseException:
            campaign.context.evaluator.pool.close()  # stops every worker, which ends the experiments
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _next_jobs(campaign: Campaign) -> list[Job]:
    if campaign.best() is None:
        return []
    recorded = campaign.population.generations()
    try:
        while True:
            generation = campaign.next_generation()
            summarise_findings(campaign, generation)
            selection = select_kernels(campaign, generation)
            jobs = campaign.jobs(selection, design_experiments(campaign, selection, generation), generation)
            if jobs or generation >= recorded:  # an earlier generation without jobs is complete
                return jobs
    except ReplyError as error:
        campaign.stuck = f"a model's replies cannot be parsed: {error}"
    except BudgetError as error:
        campaign.stuck = str(error)
    return []


def _experiment(campaign: Campaign, progress: Progress, job: Job) -> None:
    """Run one job: write or tune, evaluate, repair, log."""

    def step(activity: str) -> None:
        progress.step(job.name, f"{activity} {job.title}")

    try:
        step("starting" if job.tuned_from else "writing")
        kernel = _make(campaign, job)
        if kernel is None:
            campaign.drop(job)
            return
        trial = Trial(kernel=kernel, evaluation=_evaluate(campaign, kernel, step))
        while campaign.repairable(job, trial):
            step("repairing")
            kernel, failed = repair_kernel(campaign, job, trial), trial
            unchanged = kernel.source == failed.kernel.source  # no new version: the verdict stays
            evaluation = failed.evaluation if unchanged else _evaluate(campaign, kernel, step)
            trial = Trial(kernel=kernel, evaluation=evaluation)
            if unchanged:
                break
        step("logging")
        log_trial(campaign, trial)
    finally:
        progress.step(job.name, None)
    progress.done(trial)


def _make(campaign: Campaign, job: Job) -> Kernel | None:
    """Write a job's kernel, or tune it; None when there is no new kernel."""
    try:
        return tune_kernel(campaign, job) if job.tuned_from else write_kernel(campaign, job)
    except BudgetError as error:
        campaign.stuck = str(error)
    except InfrastructureError:
        if job.tuned_from is None:
            raise  # tuning is optional: the campaign continues without it
    return None


def _evaluate(campaign: Campaign, kernel: Kernel, step: Callable[[str], None]) -> Evaluation:
    """Compile, check, time, count. An infrastructure error that persists after retries becomes the verdict."""
    context = campaign.context
    try:
        step("compiling")
        evaluation = compile_kernel(context, kernel)
        if (skipped := campaign.prescreen.skipped(kernel, evaluation)) is not None:
            return skipped
        step("checking")
        evaluation = check_kernel(context, kernel, evaluation)
        if evaluation.verdict is not Verdict.OK:
            campaign.prescreen.forget(kernel)
            return evaluation
        step("timing")
        timed = time_kernel(context, kernel, partial(campaign.time, kernel, evaluation))
        # profiling takes a minute or more, so only the incumbent, the base of the next kernels, is profiled
        return counted(context, kernel, timed) if campaign.incumbent == kernel else timed
    except InfrastructureError as error:
        return Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))


def _conclude(campaign: Campaign, progress: Progress, params: Params) -> dict[str, Any]:
    """Run the final, confirm the champion, export and register it, close the campaign."""
    summarise_findings(campaign, campaign.population.generations(), last=True)
    _final(campaign)
    progress.leaderboard()
    best, seed = campaign.champion(), campaign.population.best_seed()
    if best is None:
        campaign.finish()
        return summaries.campaign_summary(campaign, None)
    others = [campaign.context.evaluator.reference()]
    if seed is not None and seed is not best:
        others.append(TimedSource.of(seed.kernel))
    confirmation = confirm(campaign.context, best.kernel, others, others[-1].name if seed is not best else None)
    summary = summaries.campaign_summary(campaign, confirmation)
    summaries.export_champion(campaign, confirmation, summary)
    if confirmation.confirmed and params.tracking.register_champion:
        model = f"{campaign.context.problem.name}-{campaign.context.target.name}"
        campaign.store.register(campaign.run, best.kernel, model)
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
        evaluation = time_kernel(campaign.context, incumbent.kernel, measure)
    except InfrastructureError as error:
        evaluation = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
    campaign.final = final.Final.of(incumbent.kernel.name, evaluation)
    campaign.store.log_final(campaign.run, campaign.final)


@contextmanager
def _stoppable(pool: WorkerPool) -> Generator[Callable[[], None]]:
    """Handle Ctrl-C and SIGTERM at a safe point: an exception raised inside Prefect's engine breaks it.

    The first signal stops the workers, so running experiments end with StoppedError, and lets the check that is yielded
    raise it; a second signal acts immediately.
    """
    requested = threading.Event()
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def request(_signal: int, _frame: FrameType | None) -> None:
        requested.set()
        restore()
        # in a thread: the interrupted code may hold the lock that close() needs
        threading.Thread(target=pool.close).start()

    def check() -> None:
        if requested.is_set():
            raise StoppedError("stopped by a signal")

    if threading.current_thread() is threading.main_thread():
        before |= {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield check
    finally:
        restore()
