"""A campaign: one problem, one target, one budget. The recorded kernels are its only persistent state.

Thread-safe: several experiments run at the same time and report to one campaign.
"""

import threading
import time
from collections import Counter
from pathlib import Path

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.tuner import Hold, Tuner
from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population, beats, free_names
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BudgetError, ModelError, SetupError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Attempt, Author, Kernel, Verdict, digest
from kernel_scientist.records.params import PLAYBOOK
from kernel_scientist.scientist import ensemble
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.scientist.lessons import Lessons
from kernel_scientist.scientist.llm.budget import LlmBudget
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.response_cache import Reply, ResponseCache
from kernel_scientist.scientist.proposals import Design, Draft, Selection, pick
from kernel_scientist.scientist.roles import Agent, Step
from kernel_scientist.search import strategies, tunables
from kernel_scientist.search.prescreen import Prescreen
from kernel_scientist.tracking.access import open_store
from kernel_scientist.tracking.mlflow_store import CampaignRun, MlflowStore

REPAIRABLE = (Verdict.COMPILE_ERROR, Verdict.INCORRECT, Verdict.CRASHED, Verdict.TIMEOUT)
"""Verdicts that the Repairer handles: bugs, but neither tampering nor infrastructure errors."""


class Campaign:
    """The state of a campaign: kernels tried, kernels in progress, budget left."""

    def __init__(self, context: EvaluationContext, resume: bool | str = False) -> None:
        """Start a campaign, or resume the latest (True) or a named one. Raises SetupError when there is none."""
        self.context, self.params = context, context.params
        problem, tracking, llm = context.problem, self.params.tracking, self.params.llm
        self.seeds = problem.seeds(self.params.language)
        if not self.seeds:
            raise SetupError(f"problem {problem.name} has no seeds for {self.params.language} in {problem.folder}")
        for seed in self.seeds:
            read_kernel(seed)
        self.store: MlflowStore = open_store(problem.name, context.target.name, tracking.uri, tracking.experiment)
        self.population = Population()
        self.elapsed_before_s = 0.0  # wall time before the resume
        self.final: Final | None = None
        """Times of the finalists, once the final was run."""
        self.lessons = Lessons()
        self.run: CampaignRun = self._resume(resume) if resume else self._start()
        self.response_cache = ResponseCache(environment.root() / llm.replies)
        self.llm_budget = LlmBudget.of(self.response_cache, self.params.budget, self.name)
        client = LlmClient(llm, self.response_cache, self.llm_budget, self.name, context.evaluator.pool.stopped)
        self.agent: Agent = ensemble.create(llm, context.assignment(), client)
        self.prescreen = Prescreen(self.params.search.prescreen, self.population)
        self._designed = 0  # the last generation designed by this process
        self.stuck = ""  # why no further experiment can be designed
        self.began = time.monotonic()
        best = self.best()
        self.incumbent: Kernel | None = best.kernel if best else None
        """The fastest kernel so far by the test; written only while holding the device's lock."""
        self._lock = threading.Lock()
        self._names: set[str] = {t.kernel.name for t in self.population}
        self._pending: dict[str, Job | None] = {}
        """Jobs in progress by kernel name; None: the name is reserved, its job not made yet."""
        self._sources: dict[str, str] = {}
        """Fingerprints of the sources in progress, by kernel name."""
        self._duplicates: set[tuple[str | None, str]] = set()
        """Experiments (base, title) whose source had been tried already."""
        self._untunable: frozenset[str] = frozenset()
        """Kernels that this process has tuned or tried to tune."""

    @property
    def name(self) -> str:
        """The campaign's id."""
        return self.run.campaign

    @property
    def planned(self) -> int:
        """Return how many kernels the parameters ask for: seeds, experiments and tuned kernels."""
        search_ = self.params.search
        tuned = sum(t.kernel.tuned_from is not None for t in self.population) + len(self._tuning())
        return min(len(self.seeds) + search_.generations * search_.experiments + tuned, self.params.budget.kernels)

    def elapsed_s(self) -> float:
        """Return the campaign's wall time in seconds, including that before a resume."""
        return self.elapsed_before_s + time.monotonic() - self.began

    def late(self) -> bool:
        """Whether the time budget is used up."""
        return self.elapsed_s() / 60 >= self.params.budget.minutes

    def over(self) -> str | None:
        """Return the reason why no further experiment may start, or None."""
        with self._lock:
            tried = len(self.population) + len(self._pending)
        if tried >= self.params.budget.kernels:
            return "the budget of kernels is spent (budget.kernels)"
        if self.late():
            return "the budget of minutes is spent (budget.minutes)"
        if tried >= self.planned:
            return "all generations are done"
        return self.stuck or self.llm_budget.exhausted()

    def seed_jobs(self) -> list[Job]:
        """Return jobs for the seeds that were not tried yet, within the budget of kernels."""
        tried, left = self.population.digests(), max(0, self.params.budget.kernels - len(self.population))
        untried = [f for f in self.seeds if digest(f.read_text()) not in tried]
        return [Job(name=self._take_name(), generation=0, seed_file=str(f)) for f in untried[:left]]

    def next_generation(self) -> int:
        """Return the oldest generation that is incomplete and that this process has not designed yet."""
        done = Counter(t.kernel.generation for t in self.population if _is_experiment(t))
        self._designed += 1
        while done[self._designed] >= self.params.search.experiments:
            self._designed += 1
        return self._designed

    def select(self, generation: int) -> Selection:
        """Choose base and reference kernel; an incomplete generation keeps those it began with.

        Raises ValueError when no kernel has a score.
        """
        strategy, selector = self.params.search.strategy, self.params.llm.selector.model
        sibling = next((t.kernel for t in self._generation(generation)), None)
        if sibling and sibling.base and sibling.reference and (strategy != "scientist" or selector == PLAYBOOK):
            rationale = "the selection that this generation began with"
            return Selection(base=sibling.base, reference=sibling.reference, rationale=rationale)
        return strategies.select(strategy, self.agent, self.population, self.lessons, self._step("select", generation))

    def design(self, selection: Selection, generation: int) -> Design:
        """List avenues and plans for a selection."""
        return self.agent.design(self.population, selection, self.lessons, self._step("design", generation))

    def summarise(self, generation: int, last: bool = False) -> None:
        """Summarise findings every `knowledge.distil_every` generations and at the end."""
        every, done = self.params.knowledge.distil_every, generation - 1
        due = done > 0 and (last or done % max(every, 1) == 0)
        if not every or not due or done <= self.lessons.generation:
            return
        try:
            lessons = self.agent.summarise(self.population, self.lessons, self._step("distil", done))
        except (ReplyError, BudgetError, ModelError):
            lessons = self.lessons  # the campaign continues without new findings
        self.lessons = lessons.with_run_ids(self.store.run_ids(self.run)).model_copy(update={"generation": done})
        self.store.log_lessons(self.run, self.lessons)

    def jobs(self, selection: Selection, design: Design, generation: int) -> list[Job]:
        """Pick experiments by rule, within the budget, and name their kernels.

        Left out are experiments that are in progress, that gave a duplicate source, or that are recorded already.
        """
        done = {t.kernel.experiment.title for t in self._generation(generation) if t.kernel.experiment}
        most = self.params.search.experiments
        with self._lock:
            left = self.planned - len(self.population) - len(self._pending)
            in_progress = {(j.base, j.experiment.title) for j in self._pending.values() if j and j.experiment}
            excluded = self._duplicates | in_progress
        plans = [p for p in design.plans if (selection.base, p.title) not in excluded]
        picked = [p for p in pick(plans, most) if p.title not in done]
        jobs: list[Job] = []
        for experiment in picked[: max(0, min(left, most - len(done)))]:
            job = Job.of(self._take_name(), generation, selection, design, experiment)
            self._pending[job.name] = job
            jobs.append(job)
        return jobs

    def tuning_jobs(self) -> list[Job]:
        """Return a job for the fastest kernel to tune: one per generation, within tuning's share of the time budget."""
        settings, budget = self.params.tuning, self.params.budget
        tuned = sum(t.kernel.tuned_from is not None for t in self.population)
        with self._lock:
            full = len(self.population) + len(self._pending) >= budget.kernels
        if not settings.tries or full or tuned >= self.population.generations() or self._tuning():
            return []
        if self.late() or self._tuned_enough():
            return []
        chosen = tunables.candidate(self.population, settings.promising, self._untunable)
        if chosen is None:
            return []
        job = Job(name=self._take_name(), generation=chosen.kernel.generation, tuned_from=chosen.kernel.name)
        self._pending[job.name] = job
        return [job]

    def tune(self, job: Job, hold: Hold) -> Kernel | None:
        """Search the tunables of a job's kernel; None when there was nothing to try or no time left."""
        assert job.tuned_from is not None
        started, tried = time.monotonic(), self.population.fingerprints()

        def stop() -> bool:
            return self.late() or self._tuned_enough(time.monotonic() - started)

        self._untunable |= {job.tuned_from}  # even if tuning fails: this process does not try again
        tuner = Tuner(self.context, self.population.get(job.tuned_from).kernel, hold)
        kernel = tuner.tune(job.name, lambda source: fingerprint(source) in tried, stop)
        return self._unless_duplicate(job, kernel) if kernel else None

    def _tuning(self) -> list[Job]:
        return [job for job in list(self._pending.values()) if job and job.tuned_from]

    def _tuned_enough(self, more_s: float = 0.0) -> bool:
        spent_s = sum(t.seconds for trial in self.population for t in trial.kernel.tries) + more_s
        return spent_s >= self.params.tuning.share * self.params.budget.minutes * 60

    def write(self, job: Job) -> Kernel | None:
        """Return the kernel of a job, or None when its source was tried already or is in progress."""
        if job.seed_file is not None:
            draft = Draft(source=read_kernel(Path(job.seed_file)), report=f"seed {Path(job.seed_file).name}")
        else:
            draft = self.agent.write(self.population, job.experiment_task(), self.lessons)
        return self._unless_duplicate(job, job.kernel(draft, self.params.language))

    def repairable(self, job: Job, trial: Trial) -> bool:
        """Whether a kernel failed in a way that the Repairer works on, with repair rounds and time left."""
        left = self.params.repair.rounds - len(trial.kernel.attempts)
        return job.experiment is not None and trial.evaluation.verdict in REPAIRABLE and left > 0 and not self.late()

    def repair(self, job: Job, failed: Trial) -> Kernel:
        """Return a repaired version of a kernel that failed.

        Its source is unchanged when there is no new version: the agent does not repair, the budget is used up, its
        replies cannot be parsed, or the new source was tried already. The model calls are recorded in any case.
        """
        kernel, evaluation = failed.kernel, failed.evaluation
        try:
            draft = self.agent.repair(self.population, job.experiment_task(), failed, self.lessons)
        except BudgetError as error:
            self.stuck, draft = str(error), None
        if draft is None:
            return kernel
        authors = {**kernel.authors, "repairer": Author.of(draft.llm_calls)}
        unchanged = kernel.model_copy(update={"llm_calls": (*kernel.llm_calls, *draft.llm_calls), "authors": authors})
        attempt = Attempt(
            source=kernel.source,
            verdict=evaluation.verdict,
            reason=evaluation.reason,
            bug=bug_taxonomy.classify(evaluation).id,
            critique=draft.critique,
        )
        changes = {"source": draft.source, "report": draft.report, "attempts": (*kernel.attempts, attempt)}
        if draft.unreadable or draft.source == kernel.source:
            return unchanged
        return self._unless_duplicate(job, unchanged.model_copy(update=changes)) or unchanged

    def _unless_duplicate(self, job: Job, kernel: Kernel) -> Kernel | None:
        """Return the kernel, or None when its source was tried already or is in progress."""
        with self._lock:
            key = fingerprint(kernel.source)
            others = [other for name, other in self._sources.items() if name != job.name]
            duplicate = key in self.population.fingerprints() or key in others
            if duplicate and job.experiment:
                self._duplicates.add((job.base, job.experiment.title))
            elif not duplicate:
                self._sources[job.name] = key
        return None if duplicate else kernel

    def time(self, kernel: Kernel, so_far: Evaluation) -> Evaluation:
        """Time a kernel against the reference and the incumbent; if the test finds it faster it becomes the incumbent.

        The caller holds the device's lock, so incumbents change in the order of the timings.
        """
        against, incumbent = [self.context.evaluator.reference()], self.incumbent
        if incumbent is not None:
            against.append(TimedSource.of(incumbent))
        evaluation = self.context.evaluator.time(kernel, so_far, against)
        timed = evaluation.speedup_over(REFERENCE) is not None
        if timed and (incumbent is None or beats(Trial(kernel=kernel, evaluation=evaluation), incumbent.name)):
            self.incumbent = kernel
        return evaluation

    def best(self) -> Trial | None:
        """Return the incumbent of the recorded kernels."""
        return self.population.best()

    def champion(self) -> Trial | None:
        """Return the winner of the final; without a final, the incumbent."""
        return self.population.get(self.final.champion) if self.final else self.best()

    def record(self, trial: Trial) -> None:
        """Write a kernel to the MLflow store, then add it to the population."""
        with self._lock:
            extended = self.population.add(trial)
            self.store.log(self.run, trial, self.population, self.context.problem, self._replies(trial.kernel))
            self.store.progress(self.run, extended, extended.best(), self.elapsed_s())
            self._log_spending()
            self.population = extended
            self._pending.pop(trial.kernel.name, None)
            self._sources.pop(trial.kernel.name, None)

    def drop(self, job: Job) -> None:
        """Remove a job that gave no kernel; its name can be used again."""
        with self._lock:
            self._pending.pop(job.name, None)
            self._names.discard(job.name)

    def finish(self, status: str = "FINISHED") -> None:
        """Close the campaign's run."""
        champion = self.champion()
        self._log_spending()
        self.store.finish(self.run, {"champion": champion.kernel.name if champion else ""}, status)

    def _replies(self, kernel: Kernel) -> list[Reply]:
        return [reply for call in kernel.llm_calls if (reply := self.response_cache.get(call.key))]

    def _log_spending(self) -> None:
        if paid := self.response_cache.paid_by(self.name):
            self.store.log_spending(self.run, paid)

    def _start(self) -> CampaignRun:
        campaign = f"{self.context.problem.name}-{self.context.target.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        return self.store.start(campaign, self.params.model_dump(by_alias=True), self.context.problem)

    def _resume(self, which: bool | str) -> CampaignRun:
        name = None if which is True else str(which)
        run = self.store.recorded(name, self.params.language, self.context.problem)
        self.store.reopen(run)
        self.population = self.store.population(run)
        self.elapsed_before_s = run.elapsed_s
        self.lessons = self.store.lessons(run)
        return run

    def _take_name(self) -> str:
        with self._lock:
            name = next(free_names(self._names))
            self._names.add(name)
            self._pending[name] = None
            return name

    def _generation(self, number: int) -> list[Trial]:
        return [t for t in self.population if t.kernel.generation == number and _is_experiment(t)]

    def _step(self, purpose: str, generation: int) -> Step:
        return Step.of(self.params.search.seed, purpose, generation)


def _is_experiment(trial: Trial) -> bool:
    return trial.kernel.experiment is not None and trial.kernel.tuned_from is None
