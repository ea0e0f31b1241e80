"""A campaign: one problem, one target, one budget. Its state is the population, and nothing beside it.

Thread-safe: experiments run side by side and report back here.
"""

import threading
import time
from collections import Counter
from pathlib import Path

from kernel_scientist import scientist
from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.job import Job
from kernel_scientist.campaign.tuner import Hold, Tuner
from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.compile.source import read_kernel
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.population.lineage import Population, beats, free_names
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BudgetError, ModelError, SetupError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Attempt, Author, Kernel, Verdict
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.scientist.llm.budget import Ledger
from kernel_scientist.scientist.llm.client import PLAYBOOK, Channel
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.reply_store import Archive, Reply
from kernel_scientist.scientist.roles import Design, Draft, Lessons, Mind, Selection, Turn, pick
from kernel_scientist.search import strategies, tunables
from kernel_scientist.search.prescreen import Prescreen
from kernel_scientist.tracking.mlflow_store import CampaignRun, Notebook, open_for

MENDED = (Verdict.COMPILE_ERROR, Verdict.INCORRECT, Verdict.CRASHED, Verdict.TIMEOUT)
"""What a Repairer is asked to mend: bugs, not cheats, nor what failed beside the kernel."""


class Campaign:
    """The loop's state: what was tried, what is in flight, what may still be tried."""

    def __init__(self, lab: EvaluationContext, resume: bool | str = False) -> None:
        """Start a campaign, or go on with the latest (True) or a named one. Raises SetupError when there is none."""
        self.lab, self.params = lab, lab.params
        self.seeds = lab.problem.seeds(self.params.language)
        if not self.seeds:
            raise SetupError(
                f"problem {lab.problem.name} has no seeds for {self.params.language} in {lab.problem.folder}"
            )
        for seed in self.seeds:
            read_kernel(seed)
        tracking = self.params.tracking
        self.notebook: Notebook = open_for(lab.problem.name, lab.target.name, tracking.uri, tracking.experiment)
        self.population = Population()
        self.spent_s = 0.0
        self.lessons = Lessons()
        self.run: CampaignRun = self._resume(resume) if resume else self._start()
        self.archive = Archive(environment.root() / self.params.llm.replies)
        self.ledger = Ledger.of(self.archive, self.params.budget, self.name)
        channel = Channel(self.params.llm, self.archive, self.ledger, self.name, lab.evaluator.pool.stopped)
        self.mind: Mind = scientist.mind(self.params.llm, lab.assignment(), channel)
        self.prescreen = Prescreen(self.params.search.prescreen, self.population)
        self._designed = 0
        """The generation that was designed last in this sitting."""
        self.stuck = ""
        """Why no further experiment can be designed."""
        self.began = time.monotonic()
        best = self.best()
        self.incumbent: Kernel | None = best.kernel if best else None
        """The fastest kernel so far by the test; written only by who holds the device."""
        self._lock = threading.Lock()
        self._names: set[str] = {t.kernel.name for t in self.population}
        self._pending: dict[str, Job | None] = {}
        """Names in flight, and their jobs once they have one."""
        self._sources: dict[str, str] = {}
        """Fingerprints of the sources in flight, by kernel name."""
        self._vain: set[tuple[str | None, str]] = set()
        """Experiments (base, title) that gave a source which was there already."""
        self._untunable: frozenset[str] = frozenset()
        """Kernels that were tuned in this sitting, or could not be."""

    @property
    def name(self) -> str:
        """The campaign's id."""
        return self.run.campaign

    @property
    def planned(self) -> int:
        """How many kernels the parameters ask for: seeds, experiments, and what tuning came to."""
        search_ = self.params.search
        tuned = sum(t.kernel.tuned_from is not None for t in self.population) + len(self._tuning())
        return min(len(self.seeds) + search_.generations * search_.experiments + tuned, self.params.budget.kernels)

    def elapsed_s(self) -> float:
        """Return how long the campaign has taken, earlier sittings included."""
        return self.spent_s + time.monotonic() - self.began

    def late(self) -> bool:
        """Whether the budget of minutes is spent."""
        return self.elapsed_s() / 60 >= self.params.budget.minutes

    def over(self) -> str | None:
        """Return why no further experiment may start, or None."""
        with self._lock:
            tried = len(self.population) + len(self._pending)
        if tried >= self.params.budget.kernels:
            return "the budget of kernels is spent (budget.kernels)"
        if self.late():
            return "the budget of minutes is spent (budget.minutes)"
        if tried >= self.planned:
            return "all generations are done"
        return self.stuck or self.ledger.spent()

    def seed_jobs(self) -> list[Job]:
        """Return the seeds that were not tried yet, as far as the budget of kernels goes."""
        tried, left = self.population.digests(), max(0, self.params.budget.kernels - len(self.population))
        fresh = [f for f in self.seeds if Kernel(name="", language="cpp", source=f.read_text()).digest not in tried]
        return [Job(name=self._take_name(), generation=0, seed_file=str(f)) for f in fresh[:left]]

    def next_generation(self) -> int:
        """Return the oldest generation that is not complete and was not designed yet, or not since a kill."""
        done = Counter(t.kernel.generation for t in self.population if _is_experiment(t))
        self._designed += 1
        while done[self._designed] >= self.params.search.experiments:
            self._designed += 1
        return self._designed

    def select(self, generation: int) -> Selection:
        """Choose base and reference kernel, those of a generation under way. Raises ValueError when none is right."""
        strategy, selector = self.params.search.strategy, self.params.llm.selector.model
        sibling = next((t.kernel for t in self._generation(generation)), None)
        if sibling and sibling.base and sibling.reference and (strategy != "scientist" or selector == PLAYBOOK):
            why = "what its generation started from"
            return Selection(base=sibling.base, reference=sibling.reference, rationale=why)
        return strategies.select(strategy, self.mind, self.population, self.lessons, self._turn("select", generation))

    def design(self, selection: Selection, generation: int) -> Design:
        """List avenues and plans for a selection."""
        return self.mind.design(self.population, selection, self.lessons, self._turn("design", generation))

    def distil(self, generation: int, last: bool = False) -> None:
        """Write findings down: every few generations, before the next is designed, and at the end."""
        every, done = self.params.knowledge.distil_every, generation - 1
        due = done > 0 and (last or done % max(every, 1) == 0)
        if not every or not due or done <= self.lessons.generation:
            return
        try:
            lessons = self.mind.distil(self.population, self.lessons, self._turn("distil", done))
        except (ReplyError, BudgetError, ModelError):
            lessons = self.lessons  # the campaign goes on without; the replies are kept
        self.lessons = lessons.cited(self.notebook.run_ids(self.run)).model_copy(update={"generation": done})
        self.notebook.keep_lessons(self.run, self.lessons)

    def jobs(self, selection: Selection, design: Design, generation: int) -> list[Job]:
        """Pick experiments by rule, no more than may still be tried, and name their kernels.

        An experiment that is in flight, or gave nothing new, is no plan any more; nor what was recorded before a kill.
        """
        authors = {"selector": Author.of(selection.asks), "designer": Author.of(design.asks)}
        done = {t.kernel.experiment.title for t in self._generation(generation) if t.kernel.experiment}
        most = self.params.search.experiments
        with self._lock:
            left = self.planned - len(self.population) - len(self._pending)
            taken = self._vain | {(j.base, j.experiment.title) for j in self._pending.values() if j and j.experiment}
        plans = [p for p in design.plans if (selection.base, p.title) not in taken]
        fresh = [p for p in pick(plans, most) if p.title not in done]
        jobs: list[Job] = []
        for experiment in fresh[: max(0, min(left, most - len(done)))]:
            job = Job(
                name=self._take_name(),
                generation=generation,
                base=selection.base,
                reference=selection.reference,
                experiment=experiment,
                authors=authors,
            )
            self._pending[job.name] = job
            jobs.append(job)
        return jobs

    def tuning_jobs(self) -> list[Job]:
        """Return the fastest kernel that is worth tuning: one a generation, while the share of the budget lasts."""
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
        """Search the tunables of a job's kernel; None when there was nothing to try, or no time."""
        assert job.tuned_from is not None
        started = time.monotonic()
        known = self.population.fingerprints()

        def enough() -> bool:
            return self.late() or self._tuned_enough(time.monotonic() - started)

        self._untunable |= {job.tuned_from}  # whatever comes of it: not again in this sitting
        tuner = Tuner(self.lab, self.population.get(job.tuned_from).kernel, hold)
        kernel = tuner.tune(job.name, lambda source: fingerprint(source) in known, enough)
        return self._fresh(job, kernel) if kernel else None

    def _tuning(self) -> list[Job]:
        return [job for job in list(self._pending.values()) if job and job.tuned_from]

    def _tuned_enough(self, more_s: float = 0.0) -> bool:
        spent_s = sum(t.seconds for trial in self.population for t in trial.kernel.tries) + more_s
        return spent_s >= self.params.tuning.share * self.params.budget.minutes * 60

    def write(self, job: Job) -> Kernel | None:
        """Return the kernel of a job, or None when its source was tried already or is in flight."""
        if job.seed_file is not None:
            draft = Draft(source=read_kernel(Path(job.seed_file)), report=f"seed {Path(job.seed_file).name}")
        else:
            draft = self.mind.write(self.population, job.commission(), self.lessons)
        kernel = job.kernel(draft, self.params.language)
        return self._fresh(job, kernel)

    def mendable(self, job: Job, trial: Trial) -> bool:
        """Whether a kernel that failed may go to the Repairer."""
        left = self.params.repair.rounds - len(trial.kernel.attempts)
        return job.experiment is not None and trial.evaluation.verdict in MENDED and left > 0 and not self.late()

    def repair(self, job: Job, failed: Trial) -> Kernel:
        """Return a mended version of a kernel that failed.

        With the source it had when nothing new comes: the mind does not mend, its money is spent, its replies cannot
        be read, or what it sends was tried already. What was asked stays on the record.
        """
        kernel, evaluation = failed.kernel, failed.evaluation
        try:
            draft = self.mind.repair(self.population, job.commission(), failed, self.lessons)
        except BudgetError as error:
            self.stuck, draft = str(error), None
        if draft is None:
            return kernel
        authors = {**kernel.authors, "repairer": Author.of(draft.asks)}
        asked = kernel.model_copy(update={"asks": (*kernel.asks, *draft.asks), "authors": authors})
        attempt = Attempt(
            source=kernel.source,
            verdict=evaluation.verdict,
            reason=evaluation.reason,
            bug=bug_taxonomy.classify(evaluation).id,
            critique=draft.critique,
        )
        changes = {"source": draft.source, "report": draft.report, "attempts": (*kernel.attempts, attempt)}
        if draft.unreadable or draft.source == kernel.source:
            return asked
        return self._fresh(job, asked.model_copy(update=changes)) or asked

    def _fresh(self, job: Job, kernel: Kernel) -> Kernel | None:
        """Return a kernel unless its source was tried already or is in flight."""
        with self._lock:
            key = fingerprint(kernel.source)
            others = {name: other for name, other in self._sources.items() if name != job.name}
            known = key in self.population.fingerprints() or key in others.values()
            if known and job.experiment:
                self._vain.add((job.base, job.experiment.title))
            elif not known:
                self._sources[job.name] = key
        return None if known else kernel

    def time(self, kernel: Kernel, so_far: Evaluation) -> Evaluation:
        """Time a kernel beside the reference and the incumbent, and let it take the incumbent's place.

        The caller holds the device: incumbents succeed one another in the order of timings.
        """
        rivals = [self.lab.evaluator.reference()]
        incumbent = self.incumbent
        if incumbent is not None:
            rivals.append(TimedSource.of(incumbent))
        evaluation = self.lab.evaluator.time(
            kernel, so_far, rivals, rival=incumbent.name if incumbent is not None else None
        )
        trial = Trial(kernel=kernel, evaluation=evaluation)
        right = evaluation.speedup_over(REFERENCE) is not None
        if right and (incumbent is None or beats(trial, incumbent.name)):
            self.incumbent = kernel
        return evaluation

    def best(self) -> Trial | None:
        """Return the incumbent's trial, once it is recorded."""
        return self.population.best()

    def record(self, trial: Trial) -> None:
        """Write a kernel into the notebook, then into the population."""
        with self._lock:
            larger = self.population.add(trial)
            self.notebook.log(self.run, trial, self.population, self.lab.problem, self._replies(trial.kernel))
            self.notebook.progress(self.run, larger, larger.best(), self.elapsed_s())
            self._log_spending()
            self.population = larger
            self._pending.pop(trial.kernel.name, None)
            self._sources.pop(trial.kernel.name, None)

    def drop(self, job: Job) -> None:
        """Forget a job that came to nothing; its name is free again."""
        with self._lock:
            self._pending.pop(job.name, None)
            self._names.discard(job.name)

    def finish(self, status: str = "FINISHED") -> None:
        """Close the campaign's run."""
        best = self.best()
        self._log_spending()
        self.notebook.finish(self.run, {"champion": best.kernel.name if best else ""}, status)

    def _replies(self, kernel: Kernel) -> list[Reply]:
        return [reply for ask in kernel.asks if (reply := self.archive.get(ask.key))]

    def _log_spending(self) -> None:
        if paid := self.archive.paid_by(self.name):
            self.notebook.log_spending(self.run, paid)

    def _start(self) -> CampaignRun:
        campaign = f"{self.lab.problem.name}-{self.lab.target.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        return self.notebook.start(campaign, self.params.model_dump(by_alias=True), self.lab.problem)

    def _resume(self, which: bool | str) -> CampaignRun:
        name = None if which is True else str(which)
        run = self.notebook.recorded(name, self.params.language, self.lab.problem)
        self.notebook.reopen(run)
        self.population = self.notebook.population(run)
        self.spent_s = run.spent_s
        self.lessons = self.notebook.lessons(run)
        return run

    def _take_name(self) -> str:
        with self._lock:
            name = next(free_names(self._names))
            self._names.add(name)
            self._pending[name] = None
            return name

    def _generation(self, number: int) -> list[Trial]:
        return [t for t in self.population if t.kernel.generation == number and _is_experiment(t)]

    def _turn(self, purpose: str, generation: int) -> Turn:
        return Turn.of(self.params.search.seed, purpose, generation)


def _is_experiment(trial: Trial) -> bool:
    return trial.kernel.experiment is not None and trial.kernel.tuned_from is None
