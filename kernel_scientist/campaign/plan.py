"""What a campaign does next: seeds, generations, tuning, until its budget is used up. The engine's thread asks it."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

from kernel_scientist.campaign.beginning import Beginning
from kernel_scientist.campaign.ending import ALL_DONE, NOTHING_MORE
from kernel_scientist.campaign.ledger import Job, Ledger
from kernel_scientist.population import standings
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import BudgetError, ModelError, one_line
from kernel_scientist.records.kernel import Author
from kernel_scientist.records.params import PLAYBOOK, WRITER, Params
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.proposals import Design, Selection, pick
from kernel_scientist.search import tunables, worth
from kernel_scientist.search.hypotheses import Hypothesis
from kernel_scientist.search.worth import Candidate

FOLLOWS_INCUMBENT = ("scientist", "greedy", "agent")
"""Strategies that mostly select the incumbent because it is the incumbent."""
DESIGN, WRITE, REPAIR = "design", "writer", "repair"
"""Steps that need a model's reply."""
MOST_FAILURES = 3
"""Steps of one kind in a row for which models had no usable reply, after which no more are begun."""
progress = logging.getLogger("kernel_scientist.progress")


class Plan:
    """The work that is left, by the parameters, the kernels recorded and those in progress."""

    def __init__(
        self,
        params: Params,
        beginning: Beginning,
        population: Population,
        ledger: Ledger,
        llm_budget: LlmBudget,
        elapsed_before_s: float = 0.0,
        hypotheses: Callable[[], Sequence[Hypothesis]] = list,
    ) -> None:
        """`elapsed_before_s`: the campaign's wall time before it was resumed. `hypotheses`: all that were recorded."""
        self.params, self.beginning, self.population, self.ledger = params, beginning, population, ledger
        self.llm_budget, self.hypotheses = llm_budget, hypotheses
        self.stuck = ""
        """Why no further experiment can be designed; empty while one can."""
        self._failures: Counter[str] = Counter()
        """Steps in a row without a usable reply, by their kind."""
        self._began = time.monotonic() - elapsed_before_s
        self._unjudged = len(population.unjudged())
        """First kernels that earlier sessions could not judge: they are tried again, under new names."""
        self._designed = 0
        """The last generation that this process has begun to design."""
        self._ended: tuple[str, float] | None = None
        """Why the search ended, and the campaign's wall time in seconds then."""
        self._begun: dict[str, str] = {}
        """Hypotheses by the names of their kernels, which this process has begun and whose outcomes it has not seen."""
        self._untunable: frozenset[str] = frozenset()
        """Kernels that this process has tuned or tried to tune."""

    @property
    def planned(self) -> int:
        """Return how many kernels the parameters ask for: first kernels, experiments and tuned kernels."""
        search, tuned = self.params.search, len(self.population.tuned()) + len(self.ledger.tuning())
        if search.submitted:
            return self.params.budget.kernels
        first = len(self.beginning) + self._unjudged
        return min(first + search.generations * search.experiments + tuned, self.params.budget.kernels)

    def elapsed_s(self) -> float:
        """Return the campaign's wall time in seconds, including that before a resume."""
        return time.monotonic() - self._began

    def late(self) -> bool:
        """Whether the time budget is used up."""
        return self.elapsed_s() / 60 >= self.params.budget.minutes

    def failed(self, step: str, error: Exception) -> None:
        """Note a step for which models had no usable reply.

        A budget that is used up and a provider that stays away end the designs at once. What models said, or why they
        refused a request, says little about the next: it ends them after MOST_FAILURES in a row, repairs never.
        """
        self._failures[step] += 1
        away = isinstance(error, BudgetError) or (isinstance(error, ModelError) and error.may_pass)
        if away or (step != REPAIR and self._failures[step] >= MOST_FAILURES):
            unreadable = "a model's replies cannot be parsed: " if isinstance(error, ReplyError) else ""
            self.stuck = f"{unreadable}{error}"
        else:
            progress.warning("%s: %s", step, one_line(error))

    def succeeded(self, step: str) -> None:
        """Note that models had a usable reply for a step."""
        self._failures[step] = 0

    def over(self, designing: int = 0) -> str | None:
        """Return the reason why no further generation may start, or None. `designing`: generations being designed."""
        tried = self.ledger.tried + designing * self.params.search.experiments
        if tried >= self.params.budget.kernels:
            return "the budget of kernels is spent (budget.kernels)"
        if self.late():
            spent, limit = self.elapsed_s() / 60, self.params.budget.minutes
            return f"the budget of minutes is spent (budget.minutes is {limit:g}, {spent:.1f} are gone)"
        if self.params.search.submitted:
            return "its kernels are submitted by an agent (search.strategy is agent)"
        if tried >= self.planned:
            done = f"{ALL_DONE} (search.generations is {self.params.search.generations})"
            return standings.undecided(self.population) or done
        return self.stuck or self.llm_budget.exhausted()

    def end(self) -> None:
        """Note that the search has ended; a final, a confirmation and a person's answer follow, and take their time."""
        self._ended = (self.over() or self._nothing_more(), self.elapsed_s())

    def why(self) -> str:
        """Return why no further experiment is designed, once none is."""
        return self._ended[0] if self._ended else self.over() or self._nothing_more()

    def _nothing_more(self) -> str:
        """Return why nothing is left to try in this session: a resume tries first kernels again that nobody judged."""
        return standings.undecided(self.population) or NOTHING_MORE

    def searched_s(self) -> float:
        """Return the campaign's wall time in seconds until its search ended, or until now."""
        return self._ended[1] if self._ended else self.elapsed_s()

    def seed_jobs(self) -> list[Job]:
        """Return jobs for the first kernels that were not tried yet, within the budget of kernels."""
        left = max(0, self.params.budget.kernels - len(self.population))
        return [self.ledger.open(job) for job in self.beginning.jobs(self.population)[:left]]

    def next_generation(self) -> int:
        """Return the oldest generation that is incomplete and that this process has not begun to design."""
        self._designed += 1
        while not self._left(self._designed):
            self._designed += 1
        return self._designed

    def _left(self, generation: int) -> int:
        """Return how many experiments of a generation are not recorded."""
        return max(0, self.params.search.experiments - len(self.population.experiments(generation)))

    def _room(self, generation: int) -> int:
        """Return how many experiments of a generation may begin, within the budget."""
        return max(0, min(self.planned - self.ledger.tried, self._left(generation)))

    def jobs(self, selection: Selection, design: Design, generation: int) -> list[Job]:
        """Pick experiments by rule, within the budget, and name their kernels.

        Strategy `hypotheses` picks by worth among all designs. Else left out are experiments that are in progress, that
        gave a duplicate source, or that are recorded already.
        """
        if self._by_worth():
            return self._worthwhile(self._candidates(), generation)
        recorded = [entry.title for entry in self.population.experiments(generation)]
        done = {name for title in recorded for name in (title, title.partition(": ")[0])}
        in_progress = {(j.base, j.experiment.title) for j in self.ledger.jobs.values() if j.experiment}
        excluded = self.ledger.duplicates | in_progress
        plans = [p for p in design.plans if (selection.base, p.title) not in excluded]
        picked = [p for p in pick(plans, self.params.search.experiments) if p.title not in done]
        authors = {"selector": Author.of(selection.llm_calls), "designer": Author.of(design.llm_calls)}
        if self.params.search.agent:  # the hypothesis is its writer's
            authors = {}
        job = Job(
            generation=generation,
            base=selection.base,
            reference=selection.reference,
            authors=authors,
            incumbent=self.population.incumbent() or "",
        )
        return [
            self.ledger.open(job.model_copy(update={"experiment": plan})) for plan in picked[: self._room(generation)]
        ]

    def _by_worth(self) -> bool:
        """Whether experiments are picked among all designs; not if writers state the hypotheses."""
        return self.params.search.strategy == "hypotheses" and self.params.llm.designer.model != WRITER

    def standing_jobs(self) -> list[Job]:
        """Return jobs for a generation that needs no design, as enough recorded hypotheses are worth an experiment.

        Enough: one per experiment, each with another mechanism. None for strategies other than `hypotheses`.
        """
        if not self._by_worth():
            return []
        before, candidates = self._designed, self._candidates()
        generation = self.next_generation()
        if worth.mechanisms(candidates) >= self._room(generation):
            return self._worthwhile(candidates, generation)
        self._designed = before
        return []

    def _candidates(self) -> list[Candidate]:
        """Return the hypotheses that are worth an experiment, the best first: their gain could be measured.

        One of which a kernel is recorded waits until that kernel's outcome is among the hypotheses, which may lag.
        """
        known = self.hypotheses()
        seen = {test.kernel for one in known for test in one.tests}
        self._begun = {kernel: hypothesis for kernel, hypothesis in self._begun.items() if kernel not in seen}
        busy = {job.experiment.hypothesis for job in self.ledger.jobs.values() if job.experiment}
        busy |= {hypothesis for kernel, hypothesis in self._begun.items() if kernel in self.population}
        repeats = any(model.model != PLAYBOOK for model in self.params.llm.writer.models)  # the playbook's edits are
        least = worth.least_gain(self.params)  # deterministic: the same one would fail again
        found = worth.candidates(known, self.population, busy, repeats, least)
        return [c for c in found if (c.base, c.hypothesis.experiment.title) not in self.ledger.duplicates]

    def _worthwhile(self, candidates: Sequence[Candidate], generation: int) -> list[Job]:
        """Return jobs for the best candidates, within the budget."""
        incumbent, jobs = self.population.incumbent() or "", list[Job]()
        for hypothesis, base, _ in candidates[: self._room(generation)]:
            is_own = base == hypothesis.base
            job = Job(
                generation=generation,
                base=base,
                reference=hypothesis.reference if is_own else self.population.entry(base).base or base,
                experiment=hypothesis.experiment,
                failed=tuple(test.kernel for test in hypothesis.judged),
                authors=hypothesis.authors,
                incumbent=incumbent,
            )
            jobs.append(self.ledger.open(job))
            self._begun[jobs[-1].name] = hypothesis.name
        return jobs

    def up_to_date(self, job: Job) -> Job | None:
        """Return a job as it is to be carried out now, before its writer is paid; None if it is dropped.

        An experiment is dropped if the incumbent has gained more since it was designed than it promises itself. A
        writer's own idea promises nothing yet: it starts from the new incumbent if it was to start from the old one.
        """
        before, now = job.incumbent, self.population.incumbent()
        if job.experiment is None or not before or now is None or now == before:
            return job
        if job.experiment_task().own_idea:
            moves = job.base == before and self.params.search.strategy in FOLLOWS_INCUMBENT
            return self.ledger.change(job, base=now, incumbent=now) if moves else job
        gained = 2 ** (self.population.estimate(now) - self.population.estimate(before)) - 1
        if 100 * gained <= job.experiment.uplift[1]:
            return job
        progress.debug(
            "%s (%s) is dropped: it promises at most %+g %% on %s, and %s is faster by more than that since",
            *(job.name, job.title, job.experiment.uplift[1], job.base, now),
        )
        self.ledger.drop(job)
        return None

    def tuning_jobs(self) -> list[Job]:
        """Return a job for the fastest kernel to tune: one per generation, within tuning's share of the time budget."""
        population, full = self.population, self.ledger.tried >= self.params.budget.kernels
        enough = len(population.tuned()) >= population.generations() or self.tuned_enough()
        submitted = self.params.search.submitted
        if submitted or not self.params.tuning.tries or full or enough or self.ledger.tuning() or self.late():
            return []
        if (chosen := tunables.candidate(population, self.params.tuning.promising, self._untunable)) is None:
            return []
        self._untunable |= {chosen.kernel.name}  # even if tuning fails: this process does not try again
        return [self.ledger.open(Job(generation=chosen.kernel.generation, tuned_from=chosen.kernel.name))]

    def tuning_s(self) -> float:
        """Return the seconds that are left for tuning."""
        spent_s = sum(self.population.tuned().values())
        return self.params.tuning.share * self.params.budget.minutes * 60 - spent_s

    def tuned_enough(self, more_s: float = 0.0) -> bool:
        """Whether tuning has used its share of the time budget, with `more_s` seconds of the tuning in progress."""
        return self.tuning_s() <= more_s
