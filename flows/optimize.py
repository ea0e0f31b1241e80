"""One campaign: the way of a kernel, again and again.

    select -> design -> pick -> write -> compile -> check -> time -> log, and tune what stands

Up to `search.concurrency` experiments are in flight, each in a lane of its own; there is no barrier between
generations. The campaign's state is the population in MLflow, so a flow that is killed goes on with `resume`.
"""

import contextvars
import signal
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import Any

from prefect import flow
from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows.board import Board
from flows.validate import confirm
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.state import Campaign
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BudgetError, InfrastructureError, StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.report import summaries
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.workers.pool import WorkerPool
from tasks.compilation import compile_kernel
from tasks.correctness import check_kernel
from tasks.counting import counted
from tasks.hypothesis import design_experiments, distil_findings
from tasks.implementation import repair_kernel, write_kernel
from tasks.selection import select_kernels
from tasks.timing import time_candidate
from tasks.tracking import log_trial
from tasks.tuning import tune_kernel

POLL_S = 0.5
"""How soon a signal is noticed."""


def _run_name() -> str:
    given = flow_run.get_parameters()
    words = [*(given.get("overrides") or []), *(["resumed"] if given.get("resume") else [])]
    return " ".join(["optimize", *words])[:120]


@flow(name="optimize", flow_run_name=_run_name)
def optimize(overrides: list[str] | None = None, resume: bool | str = False, params_file: str | None = None) -> Any:
    """Run one campaign and confirm its champion; return the summary that `kernel-scientist optimize --json` prints.

    `overrides` are `key.sub=value`; `resume` goes on with the latest campaign, or with the one it names.
    """
    params = load(Path(params_file) if params_file else environment.root() / "params.yaml", overrides or ())
    with evaluation_context(params) as lab:
        campaign = Campaign(lab, resume)
        board = Board(campaign)
        get_run_logger().info("campaign %s, MLflow run %s", campaign.name, campaign.run.run_id)
        try:
            with _Stop(lab.evaluator.pool) as stop:
                with board.shown():
                    _search(campaign, board, stop.check)
                return _conclude(campaign, params)
        except StoppedError:
            campaign.finish("KILLED")
            raise


def _search(campaign: Campaign, board: Board, check_stop: Callable[[], None]) -> None:
    """Keep lanes busy until the budget or the plan is spent."""
    queue: deque[Job] = deque(campaign.seed_jobs())
    seeds = {job.name for job in queue}
    lanes: dict[Future[None], Job] = {}
    width = campaign.params.search.concurrency
    fruitless = 0
    with ThreadPoolExecutor(width, thread_name_prefix="lane") as pool:
        try:
            while True:
                check_stop()
                if campaign.late():  # what is in flight may end; nothing new starts
                    while queue:
                        campaign.drop(queue.pop())
                while len(lanes) < width and queue:
                    job = queue.popleft()
                    # every lane runs in a copy of the flow's context, so that its tasks belong to this flow run
                    lanes[pool.submit(contextvars.copy_context().run, _lane, campaign, board, job)] = job
                ready = not seeds or not (seeds & {j.name for j in lanes.values()})
                if len(lanes) < width and not queue and ready:
                    queue.extend(campaign.tuning_jobs())
                    if campaign.over() is None and fruitless < 3:
                        jobs = _next_jobs(campaign)
                        queue.extend(jobs)
                        fruitless = 0 if jobs else fruitless + 1
                    if queue:
                        continue
                if not lanes:
                    return
                for lane in wait(lanes, POLL_S, return_when=FIRST_COMPLETED).done:
                    del lanes[lane]
                    lane.result()
                    fruitless = 0
        except BaseException:
            campaign.lab.evaluator.pool.close()  # ends every worker, and with them the lanes
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _next_jobs(campaign: Campaign) -> list[Job]:
    if campaign.best() is None:
        return []
    recorded = campaign.population.generations()
    try:
        while True:
            generation = campaign.next_generation()
            distil_findings(campaign, generation)
            selection = select_kernels(campaign, generation)
            jobs = campaign.jobs(selection, design_experiments(campaign, selection, generation), generation)
            if jobs or generation >= recorded:  # an old one that gives nothing was done as far as it could be
                return jobs
    except ReplyError as error:
        campaign.stuck = f"a model's replies cannot be read: {error}"
    except BudgetError as error:
        campaign.stuck = str(error)
    return []


def _lane(campaign: Campaign, board: Board, job: Job) -> None:
    """Take one experiment all the way."""
    title = job.title
    try:
        board.step(job.name, title if job.tuned_from else f"writing {title}")
        kernel = _made(campaign, job)
        if kernel is None:
            campaign.drop(job)
            return
        trial = _judged(campaign, board, job, kernel, title)
        board.step(job.name, f"logging {title}")
        log_trial(campaign, trial)
    finally:
        board.step(job.name, None)
    board.done(trial)


def _made(campaign: Campaign, job: Job) -> Kernel | None:
    """Write a job's kernel, or tune it; None when nothing comes of it."""
    try:
        return tune_kernel(campaign, job) if job.tuned_from else write_kernel(campaign, job)
    except BudgetError as error:
        campaign.stuck = str(error)
    except InfrastructureError:
        if job.tuned_from is None:
            raise  # tuning is an extra: the campaign goes on without
    return None


def _judged(campaign: Campaign, board: Board, job: Job, kernel: Kernel, title: str) -> Trial:
    """Judge a kernel; one that fails by a bug goes back to be mended, as often as the parameters allow."""
    while True:
        trial = Trial(kernel=kernel, evaluation=_judge(campaign, board, kernel, title))
        if not campaign.mendable(job, trial):
            return trial
        board.step(job.name, f"mending {title}")
        kernel = repair_kernel(campaign, job, trial)
        if kernel.source == trial.kernel.source:  # nothing new: the verdict stands
            return Trial(kernel=kernel, evaluation=trial.evaluation)


def _judge(campaign: Campaign, board: Board, kernel: Kernel, title: str) -> Evaluation:
    """Compile, check, time, count.

    What is broken beside the kernel becomes the verdict `infrastructure` when retries end.
    """
    lab: EvaluationContext = campaign.lab
    try:
        board.step(kernel.name, f"compiling {title}")
        evaluation = compile_kernel(lab, kernel)
        if (held := campaign.prescreen.held(kernel, evaluation)) is not None:
            return held
        board.step(kernel.name, f"checking {title}")
        evaluation = check_kernel(lab, kernel, evaluation)
        if evaluation.verdict is not Verdict.OK:
            campaign.prescreen.forget(kernel)
            return evaluation
        board.step(kernel.name, f"timing {title}")
        timed = time_candidate(campaign, kernel, evaluation)
        # a profiler takes a minute or more, and what the next kernels are based on is what leads
        return counted(lab, kernel, timed) if campaign.incumbent == kernel else timed
    except InfrastructureError as error:
        return Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))


def _conclude(campaign: Campaign, params: Params) -> dict[str, Any]:
    """Confirm the best kernel, export it, register it, close the campaign."""
    distil_findings(campaign, campaign.population.generations(), last=True)
    best, seed = campaign.best(), campaign.population.best_seed()
    confirmation = None
    if best is not None:
        rivals = [campaign.lab.evaluator.reference()]
        if seed is not None and seed is not best:
            rivals.append(TimedSource.of(seed.kernel))
        against = rivals[-1].name
        confirmation = confirm(campaign.lab, best.kernel, rivals, against if seed is not best else None)
        summaries.confirmation(campaign, confirmation)
        if confirmation.confirmed and params.tracking.register_champion:
            campaign.notebook.register(
                campaign.run, best.kernel, f"{campaign.lab.problem.name}-{campaign.lab.target.name}"
            )
    campaign.finish()
    return summaries.campaign_summary(campaign, confirmation)


class _Stop:
    """Ctrl-C and SIGTERM, taken at a moment of our choosing: an exception raised inside Prefect's engine breaks it.

    The first signal ends the workers, so that whatever is under way ends with StoppedError; a second one acts at once.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self.asked = threading.Event()
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "_Stop":
        if threading.current_thread() is threading.main_thread():
            self.before = {n: signal.signal(n, self._ask) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise StoppedError if somebody asked."""
        if self.asked.is_set():
            raise StoppedError("stopped by a signal")

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked.set()
        for number, handler in self.before.items():
            signal.signal(number, handler)
        # in a thread: the interrupted code may hold the lock that closing takes
        threading.Thread(target=self.pool.close).start()
