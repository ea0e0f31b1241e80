"""A campaign: one problem, one target, one budget. The recorded kernels are its only persistent state."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kernel_scientist.campaign import beginning, configurations, ending, resuming
from kernel_scientist.campaign.designs import Designs
from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.ledger import Job, Ledger
from kernel_scientist.campaign.plan import DESIGN, REPAIR, WRITE, Plan
from kernel_scientist.campaign.recorder import Recorder
from kernel_scientist.campaign.role_workshop import RoleWorkshop
from kernel_scientist.campaign.steps import infrastructure_as_verdict, progress
from kernel_scientist.campaign.tally import Tally
from kernel_scientist.campaign.target import Timer
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population.entry import beats
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BudgetError, InfrastructureError, ModelError, one_line
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Attempt, Kernel, Verdict
from kernel_scientist.records.params import PLAYBOOK
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.proposals import Design, DesignInProgress, Draft, InFlight, Lessons, Selection
from kernel_scientist.scientist.roles import FOCUSES, Agent, Step
from kernel_scientist.search import strategies, worth
from kernel_scientist.search.prescreen import Prescreen
from kernel_scientist.tracking import access, mlflow_store

T = TypeVar("T")
WAITING = "waiting for a writer"
"""What is done on a kernel whose work has not begun."""
REPAIRABLE = (Verdict.COMPILE_ERROR, Verdict.INCORRECT, Verdict.CRASHED, Verdict.TIMEOUT, Verdict.ABSENT)
"""Verdicts that the Repairer handles: bugs and kernels that are not there, but neither tampering nor infrastructure
errors."""


class Campaign:
    """The parts of a campaign, and the steps of an experiment that models or the device carry out.

    `population` holds the recorded kernels, `ledger` those in progress; `plan` says what comes next, `recorder` writes
    to MLflow. Several threads may call the steps at the same time.
    """

    def __init__(self, context: EvaluationContext, resume: bool | str = False, flow_url: str = "") -> None:
        """Start a campaign, or resume the latest (True) or a named one. True with none recorded starts one.

        `flow_url`: address of its Prefect run. Raises SetupError when the campaign cannot be resumed.
        """
        self.params, self.role_workshop = context.params, RoleWorkshop(context)
        problem, params = context.problem, context.params
        about, values = (params, problem, context.address), params.model_dump(by_alias=True)
        self.store = resuming.opened(*about)
        self.population, loose = Population(), list[str]()
        found = resuming.find(*about, resume, self.store) if resume else None
        if found:
            changes = resuming.changes(found, params, problem)
            self.store.reopen(found)
            found = self.store.with_params(found, values)
            self.population, loose = self.store.read_population(found)
            self.beginning = beginning.recorded(self.store, found, problem.seeds(params.language))
            self.lessons = self.beginning.lessons(self.store.lessons(found))
        else:
            changes, self.beginning = "", beginning.new(*about, self.store)
            self.lessons = self.beginning.lessons(Lessons())
        if resume and not found:
            progress.info("%s", resuming.nothing(*about, self.store))
        name, subject = beginning.name(problem, context.address), resuming.subject(*about)
        self.run = found or self.store.start(name, values, problem, context.by_model, subject)
        self.run = self.store.linked(self.run, flow_url)
        self.context = replace(context, campaign=self.name)
        if not found:
            beginning.record(self.store, self.run, self.beginning)
        elif changes:
            self.store.note(self.run, mlflow_store.RESUMED, changes)
        told = f"goes on{changes and f' with {changes}'}; it started" if found else "starts"
        progress.info("campaign %s %s from %s", self.name, told, self.beginning.start.words)
        self.final: Final | None = None
        """Times of the finalists, once the final was run."""
        self.replies = ResponseCache(environment.root() / params.llm.replies)
        self.llm_budget = LlmBudget.of(self.replies, params.budget, self.name)
        self.tally = Tally(self.run.metrics)
        heard = self.name, context.stopped, self.tally.failed
        client = LlmClient(params.llm, self.replies, self.llm_budget, *heard)
        self.agent: Agent = context.agent(client, self.role_workshop)
        self.prescreen = Prescreen(params.search.prescreen, self.population)
        self.ledger = Ledger(self.population)
        self.designs = Designs(self.store, self.run, self.population, worth.least_gain(params))
        planned = self.beginning, self.population, self.ledger, self.llm_budget
        self.plan = Plan(params, *planned, self.run.elapsed_s, self.designs.hypotheses)
        self.recorder = Recorder(self.store, self.run, problem, self.replies, self.population, loose, self.tally)
        self.incumbent: Kernel | None = best.kernel if (best := self.population.best()) else None
        """The fastest kernel so far by the test."""
        self._promoting, self._summarising = threading.Lock(), threading.Lock()
        self._designing: dict[int, DesignInProgress] = {}
        """Generations that are being designed; the base is empty until it is chosen."""

    @property
    def name(self) -> str:
        """The campaign's id."""
        return self.run.campaign

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.context.stopped

    def propose(self, generation: int) -> tuple[Selection, Design] | None:
        """Summarise findings if it is time, select base and reference kernel, list avenues and plans for the base.

        A design that is recorded is returned. None when the budget is used up or no model replies, then no further
        experiment is designed; also when replies cannot be parsed or a request is refused, which ends the designs if it
        goes on so (see `Plan.failed`).
        """
        if known := self.designs.get(generation):
            return known
        focus = FOCUSES[generation % len(FOCUSES)] if self._designing else ""
        self._designing[generation] = DesignInProgress(generation, "", focus)
        try:
            self.summarise(generation)
            selection = self.context.steps.select(self, generation)
            self._designing[generation] = DesignInProgress(generation, selection.base, focus)
            design = self.context.steps.design(self, generation, selection)
            self.plan.succeeded(DESIGN)
            return self.insist(lambda: self.designs.add(generation, selection, design))
        except (ReplyError, BudgetError, ModelError) as error:
            self.plan.failed(DESIGN, error)
        finally:
            del self._designing[generation]
        return None

    def design(self, generation: int, selection: Selection) -> Design:
        """List avenues and plans for the base. Raises ReplyError, BudgetError, ModelError."""
        lessons, step = self.designs.uncontradicted(self.lessons), self._step("design", generation)
        if self.params.search.strategy == "hypotheses":
            step = replace(step, planned=self.designs.planned())
        return self.agent.design(self.population, selection, lessons, step)

    def select(self, generation: int) -> Selection:
        """Choose base and reference kernel; those of the design that a model was asked for before a kill.

        Raises ReplyError, BudgetError, ModelError, and ValueError when no kernel has a score.
        """
        strategy, by_model = self.params.search.strategy, self.params.llm.selector.model != PLAYBOOK
        asked = strategy == "scientist" and by_model and self.replies.at(self.name, f"select/{generation}/0")
        begun = None if asked else self.replies.at(self.name, f"design/{generation}/0")
        if begun and begun.about:
            base, reference = begun.about
            return Selection(base=base, reference=reference, rationale="the selection that this generation began with")
        step = self._step("select", generation)
        return strategies.select(strategy, self.agent, self.population, self.lessons, step)

    def summarise(self, generation: int, last: bool = False) -> None:
        """Summarise findings if `knowledge.distil_every` generations came since the last time, and at the end."""
        every, done = self.params.knowledge.distil_every, generation - 1
        if not every or done <= 0:
            return
        with self._summarising:  # another generation's summary may be in progress
            if done - self.lessons.generation < (1 if last else every):
                return
            try:
                lessons = self.context.steps.summarise(self, done)
            except (ReplyError, BudgetError, ModelError) as error:
                progress.warning("no new findings: %s", one_line(error))
                lessons = self.lessons
            lessons = lessons.model_copy(update={"generation": done})
            self.lessons = self.insist(lambda: self.recorder.lessons(lessons))

    def distil(self, generation: int) -> Lessons:
        """Return the findings up to a generation, the new ones added. Raises ReplyError, BudgetError, ModelError."""
        return self.agent.summarise(self.population, self.lessons, self._step("distil", generation))

    def write(self, job: Job) -> Draft | None:
        """Return a draft for a job; None when the budget of money or tokens is used up, or no model replies."""
        if job.seed_file is not None:
            return self.beginning.draft(job)
        try:
            draft = self.context.steps.write(self, job)
        except (BudgetError, ModelError) as error:
            self.plan.failed(WRITE, error)
            return None
        self.plan.succeeded(WRITE)
        return draft

    def draft(self, job: Job) -> Draft:
        """Return the writer's draft for a job. Raises BudgetError, ModelError."""
        others = tuple(other for other in self._in_flight() if other.name != job.name)
        task = job.experiment_task().model_copy(update={"in_flight": others})
        return self.agent.write(self.population, task, self.lessons)

    def repairable(self, job: Job, trial: Trial) -> bool:
        """Whether a kernel failed in a way that the Repairer works on, with repair rounds and time left."""
        left = self.params.repair.rounds - len(trial.kernel.attempts)
        late = self.plan.late()
        return job.experiment is not None and trial.evaluation.verdict in REPAIRABLE and left > 0 and not late

    def repair(self, job: Job, failed: Trial) -> Kernel:
        """Return a repaired version of a kernel that failed.

        Its source is unchanged when there is no new version: the agent does not repair, the budget is used up, no model
        replies, or its replies cannot be parsed. The model calls are recorded in any case.
        """
        kernel, evaluation = failed.kernel, failed.evaluation
        try:
            draft = self.context.steps.repair(self, job, failed)
        except (BudgetError, ModelError) as error:
            self.plan.failed(REPAIR, error)
            draft = None
        if draft is None:
            return kernel
        unchanged = draft.noted(kernel)
        if draft.unreadable or draft.source == kernel.source:
            return unchanged
        attempt = Attempt(
            source=kernel.source,
            verdict=evaluation.verdict,
            reason=evaluation.reason,
            failed_untimed=evaluation.failed_untimed,
            bug=bug_taxonomy.classify(evaluation).id,
            critique=draft.critique,
        )
        changes = {"source": draft.source, "report": draft.report, "attempts": (*kernel.attempts, attempt)}
        return unchanged.model_copy(update=changes)

    def redraft(self, job: Job, failed: Trial) -> Draft | None:
        """Return the repairer's draft, None if the agent does not repair. Raises BudgetError, ModelError."""
        task = job.experiment_task().model_copy(update={"experiment": failed.kernel.experiment})
        return self.agent.repair(self.population, task, failed, self.lessons)

    @infrastructure_as_verdict
    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile and check a kernel; it is not executed if its code is its base's or it is prescreened."""
        base = self.population.get(kernel.base).evaluation if kernel.base else None
        skip = partial(self.prescreen.skipped, kernel) if self.prescreen.most else None
        return self.context.steps.compile(self.context, kernel, skip=skip, base=base)

    def tune(self, job: Job) -> Kernel | None:
        """Search the tunables of a job's kernel; None when there was nothing to try or no time left, when it failed, or
        without a gain on a model target."""
        assert job.tuned_from is not None
        base = self.population.get(job.tuned_from).kernel
        try:
            search = partial(configurations.best, self.context, self.plan, base, job.name)
            return self.context.steps.tune(self.context, base, search, job.name)
        except InfrastructureError:
            return None  # tuning is optional: the campaign continues without it

    @infrastructure_as_verdict
    def time(self, kernel: Kernel, built: Evaluation) -> Evaluation:
        """Time a kernel against the reference and the incumbent; count it if it becomes the incumbent."""
        steps, measure = self.context.steps, partial(self._promoted, kernel, built)
        timed = steps.time(self.context, kernel, measure, noise=self.incumbent is not None)
        # profiling takes a minute or more, so only the incumbent, the base of the next kernels, is profiled
        return steps.counted(self.context, kernel, timed) if self.incumbent == kernel else timed

    def _promoted(self, kernel: Kernel, so_far: Evaluation) -> Evaluation:
        """Time a kernel against the reference and the incumbent; if the test finds it faster it becomes the incumbent.

        Its base is timed in the same run, which makes its gain a measured pair. If another kernel has become the
        incumbent meanwhile, on another device, it is timed against that one, too.
        """
        while True:
            incumbent, target = self.incumbent, self.context.target
            timer: Timer = target
            if incumbent is None:  # the machine's noise decides whether an incumbent is replaced: there is none yet
                timer = target.with_harness(self.params.harness.model_copy(update={"noise_runs": 0}))
            against = [target.reference(), *self._base(kernel, incumbent)]
            against += [TimedSource.of(incumbent)] if incumbent else []
            evaluation = timer.time(kernel, so_far, against)
            rival = incumbent.name if incumbent else None
            failed = evaluation.speedup_over(REFERENCE) is None
            if failed or (rival and not beats(Trial(kernel=kernel, evaluation=evaluation), rival)):
                return evaluation
            with self._promoting:
                if self.incumbent is incumbent:
                    self.incumbent = kernel
                    return evaluation

    def _base(self, kernel: Kernel, incumbent: Kernel | None) -> list[TimedSource]:
        """Return the base of a kernel as a source to be timed, unless it is the incumbent, which is timed anyway.

        A leaderboard times each source by itself, so there it would be another submission and no pair.
        """
        if kernel.base is None or incumbent is None or kernel.base == incumbent.name or not self.context.target.pairs:
            return []
        return [TimedSource.of(self.population.get(kernel.base).kernel, optional=True)]

    def record(self, trials: Sequence[Trial]) -> None:
        """Write kernels as MLflow runs and add them to the population."""
        self.context.steps.record(self, trials)

    def store_kernels(self, trials: Sequence[Trial]) -> None:
        """Write kernels as MLflow runs and add them to the population, those that were not yet.

        Wait while the store does not answer.
        """
        began_s = {name: job.began_s for name, job in list(self.ledger.jobs.items())}
        self.insist(lambda: self.recorder.record(trials, self.plan.elapsed_s, began_s))

    def insist(self, act: Callable[[], T]) -> T:
        """Return what an act on the store returns; wait while the store does not answer."""
        return access.insist(act, self.store.uri, self.context.stopped)

    def champion(self) -> Trial | None:
        """Return the winner of the final; without a final, the incumbent."""
        return self.population.get(self.final.champion) if self.final else self.population.best()

    def finish(self, status: str = "FINISHED", why: str = "") -> None:
        """Close the campaign's run. `why`: why it ended, by default what its plan says."""
        self.run = ending.noted(self.run, why or self.plan.why(), self.plan.searched_s())

        def close() -> None:
            self.recorder.flush(last=True)
            self.designs.record()
            ending.record(self.store, self.run)
            self.store.finish(self.run, champion.kernel.name if (champion := self.champion()) else "", status)

        if status == "FINISHED":
            self.insist(close)
            return
        try:  # who stopped it does not want to wait
            close()
        except Exception as error:
            progress.warning("the campaign's run stays open until the next command: %s", one_line(error))

    def _step(self, purpose: str, generation: int) -> Step:
        """Return a step of a generation, with all that is in progress: no designer works in ignorance of the others."""
        designing = dict(self._designing)  # a copy: other threads begin and end designs
        own, others = designing.pop(generation, None), tuple(sorted(designing.values()))
        focus = own.focus if own else ""
        return Step.of(self.params.search.seed, purpose, generation, self._in_flight(), others, focus)

    def _in_flight(self) -> tuple[InFlight, ...]:
        """Return the kernels in progress: those that have a base and are not recorded."""
        jobs = [(job, job.base or job.tuned_from) for job in list(self.ledger.jobs.values())]
        return tuple(
            InFlight(job.name, base, job.title, self.ledger.activities.get(job.name, WAITING))
            for job, base in jobs
            if base and job.name not in self.population
        )
