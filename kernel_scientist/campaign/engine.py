"""The engine of a campaign: models, builds, timings and records go on side by side, each at its own pace.

    model (llm.concurrency calls) -> build (one per core) -> device (one timing each) -> record (one writer)

One thread decides what is next; nothing waits for a generation to end. A model designs or writes the next kernels,
from those recorded so far, while others are built and timed. With `llm.concurrency` = n, at most 2n - 1 model calls
and kernels are in progress together. With n = 1 one kernel is finished before the next is begun.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.pipeline import Pipeline
from kernel_scientist.hardware import cpu
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.scientist.proposals import Design, Selection

T = TypeVar("T")
POLL_S = 0.5
"""Interval at which signals are checked, in seconds."""
MOST_FRUITLESS = 3
"""Designs in a row without a new experiment, after which no more are made until a kernel is recorded."""


@dataclass(frozen=True)
class Steps:
    """The steps that may be retried or cached; a flow passes Prefect tasks."""

    build: Callable[[Kernel], Evaluation]
    """Compile and check a kernel."""
    time: Callable[[Kernel, Evaluation], Evaluation]
    tune: Callable[[Job], Kernel | None]
    record: Callable[[Sequence[Trial]], None]


class Watcher(Protocol):
    """Is told what happens."""

    def step(self, kernel: str, activity: str | None) -> None:
        """Take note of the activity on a kernel; None: it is finished."""
        ...

    def done(self, trial: Trial) -> None:
        """Take note of a recorded kernel."""
        ...


class Engine:
    """Runs a campaign's experiments until its plan or its budget is used up."""

    def __init__(self, campaign: Campaign, steps: Steps, watcher: Watcher, check_stop: Callable[[], None]) -> None:
        """`check_stop` raises an exception to stop; it is called at least every POLL_S seconds."""
        self.campaign, self.steps, self.watcher, self.check_stop = campaign, steps, watcher, check_stop
        self.most_calls = campaign.params.llm.calls_in_flight
        widths = {
            "model": self.most_calls,
            "build": cpu.cores(),
            "device": campaign.context.devices,
            "tune": 1,
            "record": 1,
        }
        self.pipeline = Pipeline(widths)
        self._ready: deque[Job] = deque()
        self._repairs: deque[tuple[Job, Trial]] = deque()
        self._to_record: list[Trial] = []
        self._thinking, self._designing = 0, 0
        """Models at work, and those of them that design."""
        self._behind: set[str] = set()
        """Kernels that are being built, tuned, timed or recorded."""
        self._recording = False
        self._fruitless = 0
        self._resumed_at = campaign.population.generations()

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
                self.campaign.context.evaluator.close()  # this ends the experiments
                raise

    def _start_work(self) -> None:
        if self.campaign.plan.late():  # what has begun may end; nothing new begins
            while self._ready:
                self.campaign.ledger.drop(self._ready.popleft())
        while self._repairs and self._thinking < self.most_calls:
            self._repair(*self._repairs.popleft())
        while self._thinking < self.most_calls and self._thinking + len(self._behind) < 2 * self.most_calls - 1:
            if self._ready:
                self._begin(self._ready.popleft())
            elif not self._plan_more():
                break
        if self._to_record and not self._recording:
            trials, self._to_record, self._recording = self._to_record, [], True
            self.pipeline.submit("record", partial(self.steps.record, trials), lambda _: self._recorded(trials))

    def _plan_more(self) -> bool:
        """Queue a tuning job or begin to design a generation; return False if there is nothing to do."""
        plan, ledger = self.campaign.plan, self.campaign.ledger
        if any(job.seed_file for job in ledger.jobs.values()):
            return False
        if tuning := plan.tuning_jobs():
            self._ready.extend(tuning)
            return True
        if self._fruitless >= MOST_FRUITLESS or not self.campaign.population.incumbent() or plan.over(self._designing):
            return False
        generation = plan.next_generation()
        self._think(partial(self.campaign.design, generation), partial(self._designed, generation))
        self._designing += 1
        return True

    def _designed(self, generation: int, result: tuple[Selection, Design] | None) -> None:
        self._thinking -= 1
        self._designing -= 1
        jobs = self.campaign.plan.jobs(*result, generation) if result else []
        self._ready.extend(jobs)
        if jobs:
            self._fruitless = 0
        elif generation >= self._resumed_at:  # an earlier generation without jobs is complete
            self._fruitless += 1

    def _begin(self, job: Job) -> None:
        if job.tuned_from:
            self._show(job, "tuning")
            self._behind.add(job.name)
            self.pipeline.submit("tune", partial(self.steps.tune, job), partial(self._made, job))
            return
        self._show(job, "writing")
        self._think(partial(self.campaign.write, job), partial(self._written, job))

    def _think(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        self._thinking += 1
        self.pipeline.submit("model", work, then)

    def _written(self, job: Job, kernel: Kernel | None) -> None:
        self._thinking -= 1
        self._behind.add(job.name)
        self._made(job, kernel)

    def _made(self, job: Job, kernel: Kernel | None) -> None:
        """Evaluate a kernel unless there is none, or its source was tried already or is in progress."""
        if kernel is not None and self.campaign.ledger.claim(job, kernel.source):
            self._build(job, kernel)
            return
        self.campaign.ledger.drop(job)
        self._behind.discard(job.name)
        self.watcher.step(job.name, None)

    def _build(self, job: Job, kernel: Kernel) -> None:
        self._show(job, "building")
        self.pipeline.submit("build", partial(_decided, self.steps.build, kernel), partial(self._built, job, kernel))

    def _built(self, job: Job, kernel: Kernel, evaluation: Evaluation) -> None:
        if evaluation.verdict is not Verdict.OK or evaluation.skipped:
            self.campaign.prescreen.forget(kernel)
            self._evaluated(job, kernel, evaluation)
            return
        self._show(job, "timing")
        work = partial(_decided, self.steps.time, kernel, evaluation)
        self.pipeline.submit("device", work, partial(self._evaluated, job, kernel))

    def _evaluated(self, job: Job, kernel: Kernel, evaluation: Evaluation) -> None:
        trial = Trial(kernel=kernel, evaluation=evaluation)
        if self.campaign.repairable(job, trial):
            self._behind.discard(job.name)
            self._repairs.append((job, trial))
        else:
            self._show(job, "recording")
            self._to_record.append(trial)

    def _repair(self, job: Job, failed: Trial) -> None:
        self._show(job, "repairing")
        self._think(partial(self.campaign.repair, job, failed), partial(self._repaired, job, failed))

    def _repaired(self, job: Job, failed: Trial, kernel: Kernel) -> None:
        self._thinking -= 1
        self._behind.add(job.name)
        if kernel.source == failed.kernel.source:
            self._to_record.append(Trial(kernel=kernel, evaluation=failed.evaluation))
        elif self.campaign.ledger.claim(job, kernel.source):
            self._build(job, kernel)
        else:  # the new version was tried already: the calls are recorded with the old one
            calls = {"llm_calls": kernel.llm_calls, "authors": kernel.authors}
            self._to_record.append(failed.model_copy(update={"kernel": failed.kernel.model_copy(update=calls)}))

    def _recorded(self, trials: Sequence[Trial]) -> None:
        self._recording, self._fruitless = False, 0
        for trial in trials:
            self.campaign.ledger.close(trial.kernel.name)
            self._behind.discard(trial.kernel.name)
            self.watcher.step(trial.kernel.name, None)
            self.watcher.done(trial)

    def _show(self, job: Job, activity: str) -> None:
        self.watcher.step(job.name, f"{activity} {job.title}")


def _decided(step: Callable[..., Evaluation], *arguments: Kernel | Evaluation) -> Evaluation:
    """Return a step's evaluation; an infrastructure error that persists after retries becomes the verdict."""
    try:
        return step(*arguments)
    except InfrastructureError as error:
        return Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))
