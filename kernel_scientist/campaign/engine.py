"""The engine of a campaign: models, builds, timings and records go on side by side, each at its own pace.

    model (llm.concurrency calls) -> build (one per core) -> device (one timing each) -> record (one writer)

One thread decides what is next; nothing waits for a generation to end. A model designs or writes the next kernels,
from those recorded so far, while others are built and timed. With `llm.concurrency` = n, kernels in progress and
generations that are being designed are together at most 2n - 1. With n = 1 kernels follow each other.
"""

import contextvars
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

from kernel_scientist.campaign import agent_command
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.ledger import Job
from kernel_scientist.campaign.tally import Tally
from kernel_scientist.hardware import cpu
from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.sandbox import device_queue
from kernel_scientist.scientist.proposals import Design, Selection, missing

T = TypeVar("T")
POLL_S = 0.5
"""Interval at which signals are checked, in seconds."""
MOST_FRUITLESS = 3
"""Designs in a row without a new experiment, after which no more are made until a kernel is recorded."""
Work = tuple[str, str, Callable[[], Any]]
"""A stage, what is done there, and the function that does it."""
NOISE_SHARE = 0.2
"""Most of the minutes that a campaign has left that the measurement of the noise takes: it serves the kernels timed in
the rest."""


class Pipeline:
    """Stages with threads and a queue each. `submit`'s work runs in them; the caller of `handle` handles the results.

    Work runs in a copy of the context of the thread that submits it, so that Prefect's tasks belong to its flow run.
    """

    def __init__(self, widths: Mapping[str, int], tally: Tally | None = None) -> None:
        """`widths`: number of threads by stage. `tally`: counts where the time goes."""
        self._tally = tally or Tally()
        self._stages = {name: ThreadPoolExecutor(width, thread_name_prefix=name) for name, width in widths.items()}
        self.busy: dict[Future[Any], Callable[[Any], None]] = {}
        """Work that is submitted and whose results are not handled yet, and what handles them."""
        self._closed = False
        self._waiting, self._within, self._counting = Counter[str](), Counter[str](), threading.Lock()

    @property
    def is_awaited(self) -> bool:
        """Whether work within other work waits for its turn or goes on."""
        with self._counting:
            return self._within.total() > 0

    def submit(self, stage: str, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Queue work for a stage. `then` gets its result, in the thread that calls `handle`."""
        context, submitted = contextvars.copy_context(), time.monotonic()

        def timed() -> T:
            began = time.monotonic()
            self._count(self._waiting, stage, -1)
            result = context.run(work)
            self._tally.worked(stage, began - submitted, time.monotonic() - began, result)
            return result

        self._count(self._waiting, stage, 1)
        self.busy[self._stages[stage].submit(timed)] = then

    def await_turn(self, stage: str, work: Callable[[], T]) -> T:
        """Do work within that of another stage: once nothing that was submitted waits; return its result.

        Raises StoppedError if it did not begin before the end.
        """
        context = contextvars.copy_context()

        def turn() -> tuple[T] | None:
            return None if self._waiting[stage] else (context.run(work),)

        self._count(self._within, stage, 1)
        try:
            while (done := self._stages[stage].submit(turn).result()) is None:
                pass  # it goes to the end of the queue, behind what waits
            return done[0]
        except (CancelledError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self._closed:
                raise
            raise StoppedError("the campaign was stopped") from error
        finally:
            self._count(self._within, stage, -1)

    def _count(self, counter: Counter[str], stage: str, number: int) -> None:
        with self._counting:
            counter[stage] += number

    def handle(self, timeout_s: float) -> None:
        """Wait for results and handle them; return without one after `timeout_s`. Raises what the work raised."""
        for future in wait(self.busy, timeout_s, FIRST_COMPLETED).done:
            self.busy.pop(future)(future.result())

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what has not begun, and wait for the rest."""
        self._closed = True
        for waits in (False, True):
            for stage in self._stages.values():
                stage.shutdown(wait=waits, cancel_futures=True)


class Engine:
    """Runs a campaign's experiments until its plan or its budget is used up."""

    def __init__(
        self,
        campaign: Campaign,
        show: Callable[[str, str | None], None],
        done: Callable[[Trial], None],
        check_stop: Callable[[], None],
    ) -> None:
        """`show` gets a kernel's name and the activity on it, None at the end; `done` gets a recorded kernel.

        `check_stop` raises an exception to stop; it is called every POLL_S seconds, and after each result.
        """
        self.campaign, self.show, self.done, self.check_stop = campaign, show, done, check_stop
        self.most_calls = campaign.params.llm.calls_in_flight(agent_command.roles(campaign.params))
        widths = {"model": self.most_calls, "build": cpu.cores(), "device": campaign.context.target.devices}
        self.pipeline = Pipeline({**widths, "tune": 1, "record": 1}, campaign.tally)
        campaign.role_workshop.run = self.pipeline.await_turn
        self._ready: deque[Job] = deque()
        self._stages: dict[str, str] = {}
        """The stage of each kernel in progress, by its name."""
        self._designing = 0
        """Generations that are being designed."""
        self._to_record: list[Trial] = []
        self._recording = False
        self._fruitless = 0
        self._news = True
        """Whether something was designed or recorded since the latest design began."""
        self._resumed_at = campaign.population.generations()
        left_s = max(0.0, 60 * campaign.params.budget.minutes - campaign.plan.elapsed_s())
        campaign.context.target.work_for(self._device_is_idle, NOISE_SHARE * left_s)

    def run(self) -> None:
        """Run until nothing is left. Raises what `check_stop` or a step raises, after all work has ended."""
        self._ready.extend(self.campaign.plan.seed_jobs())
        with self.pipeline:
            try:
                self._start_work()
                while self.pipeline.busy:
                    self.pipeline.handle(POLL_S)
                    self.check_stop()
                    self._start_work()
            except BaseException:
                self.campaign.context.target.close()  # this ends the experiments
                raise

    def _start_work(self) -> None:
        if self.campaign.plan.late():  # what has begun may end; nothing new begins
            while self._ready:
                self.campaign.ledger.drop(self._ready.popleft())
        while self._has_room():
            if self._ready:
                job = self.campaign.plan.up_to_date(self._ready.popleft())
                if job is not None:
                    self._go_on(job, self._experiment(job))
            elif not self._plan_more():
                break
        if self._to_record and not self._recording:
            trials, self._to_record, self._recording = self._to_record, [], True
            self.pipeline.submit("record", partial(self.campaign.record, trials), lambda _: self._recorded(trials))

    def _has_room(self) -> bool:
        """Whether a model is free, and few enough kernels are in progress."""
        return self._thinking() < self.most_calls and self._designing + len(self._stages) < 2 * self.most_calls - 1

    def _thinking(self) -> int:
        return self._designing + list(self._stages.values()).count("model")

    def _device_is_idle(self) -> bool:
        """Whether the timing in progress delays nobody: all models think, none waits for a tool, nothing else is built,
        tuned or timed here, and no other process waits for the device. Any thread may ask.
        """
        rest = Counter(list(self._stages.values())) - Counter(["device"])
        quiet = self._thinking() >= self.most_calls and not rest.keys() & {"build", "device", "tune"}
        return quiet and not self.pipeline.is_awaited and not device_queue.is_wanted(self.campaign.context.address.lock)

    def _plan_more(self) -> bool:
        """Queue a tuning job or a generation of recorded plans, or begin to design one; False if nothing is to do.

        While a generation is being designed, another one begins only if there is news: it would be the same design.
        """
        plan, ledger = self.campaign.plan, self.campaign.ledger
        if any(job.seed_file for job in ledger.jobs.values()):
            return False
        if tuning := plan.tuning_jobs():
            self._ready.extend(tuning)
            return True
        if self._fruitless >= MOST_FRUITLESS or not self.campaign.population.incumbent() or plan.over(self._designing):
            return False
        if standing := plan.standing_jobs():
            self._ready.extend(standing)
            return True
        if self._designing and not self._news:
            return False
        generation = plan.next_generation()
        self.pipeline.submit("model", partial(self.campaign.propose, generation), partial(self._designed, generation))
        self._designing, self._news = self._designing + 1, False
        return True

    def _designed(self, generation: int, result: tuple[Selection, Design] | None) -> None:
        self._designing, self._news = self._designing - 1, True
        jobs = self.campaign.plan.jobs(*result, generation) if result else []
        self._ready.extend(jobs)
        if jobs:
            self._fruitless = 0
        elif generation >= self._resumed_at:  # an earlier generation without jobs is complete
            self._fruitless += 1

    def _go_on(self, job: Job, experiment: Generator[Work, Any, None], result: Any = None) -> None:
        """Give the result of an experiment's last step to it, and submit its next one, if any."""
        try:
            stage, activity, work = experiment.send(result)
        except StopIteration:
            return
        self._show(job, stage, activity)
        self.pipeline.submit(stage, work, partial(self._go_on, job, experiment))

    def _experiment(self, job: Job) -> Generator[Work, Any, None]:
        """Make a job's kernel, evaluate it, repair it while that helps, and queue what came of it to be recorded.

        A kernel whose source was tried already, or is in progress, is dropped. What a writer declines is recorded.
        """
        campaign, ledger = self.campaign, self.campaign.ledger
        kernel: Kernel | None = None
        if job.tuned_from:
            kernel = yield "tune", "tuning", partial(campaign.tune, job)
        elif (draft := (yield "model", "writing", partial(campaign.write, job))) is not None:
            kernel = job.kernel(draft, campaign.params.language)
            if draft.declined:
                refusal = Evaluation(verdict=Verdict.DECLINED, reason=draft.declined)
                self._record(job, Trial(kernel=kernel, evaluation=refusal))
                return
        if kernel is None or not ledger.claim(job, kernel.source):
            ledger.drop(job)
            self._forget(job.name)
            return
        trial = yield from self._evaluation(kernel)
        while campaign.repairable(job, trial):
            repaired: Kernel = yield "model", "repairing", partial(campaign.repair, job, trial)
            if repaired.source == trial.kernel.source or not ledger.claim(job, repaired.source):
                # no version that was not tried already: the calls are recorded with the old one
                calls = {
                    "llm_calls": repaired.llm_calls,
                    "authors": repaired.authors,
                    "transcript": repaired.transcript,
                }
                trial = trial.model_copy(update={"kernel": trial.kernel.model_copy(update=calls)})
                break
            trial = yield from self._evaluation(repaired)
        self._record(job, trial)

    def _record(self, job: Job, trial: Trial) -> None:
        self._show(job, "record", "recording")
        self._to_record.append(trial)

    def _evaluation(self, kernel: Kernel) -> Generator[Work, Any, Trial]:
        if why := missing(kernel.source):
            return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.ABSENT, reason=why))
        evaluation: Evaluation = yield "build", "building", partial(self._build, kernel)
        if evaluation.verdict is not Verdict.OK or evaluation.skipped:
            self.campaign.prescreen.forget(kernel)
        else:
            evaluation = yield "device", "timing", partial(self.campaign.time, kernel, evaluation)
        return Trial(kernel=kernel, evaluation=evaluation)

    def _build(self, kernel: Kernel) -> Evaluation:
        """Compile and check a kernel; wait while the disk is full: else one after the other would fail."""
        disk.await_room(environment.cache_folder(), self.campaign.stopped)
        return self.campaign.compile(kernel)

    def _recorded(self, trials: Sequence[Trial]) -> None:
        self._recording, self._fruitless, self._news = False, 0, True
        for trial in trials:
            self.campaign.ledger.close(trial.kernel.name)
            self._forget(trial.kernel.name)
            self.done(trial)

    def _show(self, job: Job, stage: str, activity: str) -> None:
        self._stages[job.name] = stage
        self.campaign.ledger.activities[job.name] = activity
        self.show(job.name, f"{activity} {job.title}")

    def _forget(self, name: str) -> None:
        del self._stages[name]
        self.show(name, None)
