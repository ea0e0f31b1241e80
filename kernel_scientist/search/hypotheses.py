"""Hypotheses: what designers planned, and what came of it.

All of it follows from the recorded designs and kernels, so a resumed campaign continues as it would have. A gain is a
measured pair with its interval, or it decides nothing (docs/decisions/0022-gains-are-pairs.md).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import Field

from kernel_scientist.population.entry import Entry
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import Author, Experiment, Verdict
from kernel_scientist.scientist.proposals import OWN_IDEA, Designed

FAILED = frozenset(Verdict) - {Verdict.OK, Verdict.NO_CHANGE, Verdict.COMPILED, Verdict.INFRASTRUCTURE}
"""Verdicts of an implementation that failed: they say nothing about its hypothesis."""
_OWN_IDEA = re.compile(rf"{OWN_IDEA} \d+\.\d+(?:: |\s*$)")
"""What stands before the statement of a writer's own idea."""


class HypothesisState(StrEnum):
    """What is known of a hypothesis. `open`: nothing that was measured decides it. `supported`: a kernel is certainly
    faster than its base. `refuted`: a correct kernel is not, or certainly gains less than was predicted. `blocked`: all
    its implementations failed. `overtaken`: its base is slower than the fastest kernel by more than it promises."""

    OPEN = "open"
    SUPPORTED = "supported"
    REFUTED = "refuted"
    BLOCKED = "blocked"
    OVERTAKEN = "overtaken"


class HypothesisTest(Record):
    """A kernel that tried a hypothesis."""

    kernel: str
    """Its name."""
    base: str
    """Its base."""
    verdict: Verdict
    """Its verdict."""
    gain: Finite | None = None
    """How many times faster it was than its base; None if that is not known or not resolved."""
    interval: tuple[Finite, Finite] | None = None
    """Interval of that in the run that timed both; a point for a prediction; None without a pair."""

    @property
    def words(self) -> str:
        """Return the gain with its interval, or the verdict."""
        if self.interval is None or self.verdict is Verdict.NO_CHANGE:
            return "no gain was resolved" if self.verdict is Verdict.OK else self.verdict.value
        low, high = self.interval
        if low == high:
            return f"{100 * (low - 1):+.1f} % over {self.base} (predicted)"
        return f"{factors.percent(self.gain or (low * high) ** 0.5, self.interval)} over {self.base}"


class Hypothesis(Record):
    """A plan of a design, and what came of it."""

    name: str
    """Name within the campaign: `h3.2`; for a kernel of an older campaign, the kernel's name."""
    generation: int
    """Generation of its design."""
    base: str
    """The kernel that it was designed for."""
    reference: str
    """The kernel that the base was contrasted with."""
    experiment: Experiment
    """Statement, plan and prediction."""
    state: HypothesisState
    """What is known of it."""
    tests: tuple[HypothesisTest, ...] = ()
    """The kernels that tried it, oldest first."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])
    """Who selected its base and designed it, by role."""

    @property
    def statement(self) -> str:
        """Return the statement without differences of spelling, by which campaigns compare hypotheses."""
        return plain(stated(self.experiment.title))

    @property
    def mechanism(self) -> str:
        """Return what makes it faster; the beginning of the title if the designer did not say."""
        return plain(self.experiment.mechanism or self.experiment.title.partition(":")[0])

    @property
    def judged(self) -> tuple[HypothesisTest, ...]:
        """Return the tests that a machine's failure did not end."""
        return tuple(test for test in self.tests if test.verdict is not Verdict.INFRASTRUCTURE)

    @property
    def is_untried(self) -> bool:
        """Whether it is open and nobody has tried it, but for kernels that a machine's failure ended."""
        return self.state is HypothesisState.OPEN and not self.judged

    @property
    def is_decided(self) -> bool:
        """Whether it is supported or refuted."""
        return self.state in (HypothesisState.SUPPORTED, HypothesisState.REFUTED)


def of(designs: Iterable[Designed], population: Population) -> list[Hypothesis]:
    """Return the hypotheses of a campaign with their states, oldest first.

    A plan that leaves the hypothesis to the writer is one once a kernel states it.
    """
    tests, older = defaultdict[str, list[Entry]](list), list[Entry]()
    for entry in population.entries():
        if entry.is_experiment:
            (tests[entry.hypothesis] if entry.hypothesis else older).append(entry)
    found = dict[str, Hypothesis]()
    for one in designs:
        authors = {"selector": Author.of(one.selection.llm_calls), "designer": Author.of(one.design.llm_calls)}
        for plan in one.design.plans:
            if plan.hypothesis in found:  # a plan that was repeated on its base: the first one stays
                continue
            made = tests.get(plan.hypothesis, [])
            if not plan.rubric and plan.title.startswith(OWN_IDEA):
                if not made:
                    continue
                plan = population.get(made[0].name).kernel.experiment or plan
            base, reference = one.selection.base, one.selection.reference
            made_of = _hypothesis(plan.hypothesis, one.generation, base, reference, plan, made, population)
            found[plan.hypothesis] = made_of.model_copy(update={"authors": authors})
    for entry in older:
        kernel = population.get(entry.name).kernel
        if kernel.experiment and entry.base:
            plan = kernel.experiment.model_copy(update={"hypothesis": entry.name})  # kernels that try it again name it
            place = entry.name, entry.generation, entry.base, kernel.reference or entry.base
            found[entry.name] = _hypothesis(*place, plan, [entry, *tests.get(entry.name, [])], population)
    return list(found.values())


def _hypothesis(
    name: str,
    generation: int,
    base: str,
    reference: str,
    plan: Experiment,
    made: Sequence[Entry],
    population: Population,
) -> Hypothesis:
    tests = tuple(_test(entry, population) for entry in made)
    return Hypothesis(
        name=name,
        generation=generation,
        base=base,
        reference=reference,
        experiment=plan,
        state=_state(base, plan, list(zip(made, tests, strict=True)), population),
        tests=tests,
    )


def _test(entry: Entry, population: Population) -> HypothesisTest:
    base = entry.base or ""
    gain, interval = entry.gain, None
    if entry.verdict is Verdict.NO_CHANGE:  # the compiler did it already
        gain, interval = 1.0, (1.0, 1.0)
    elif entry.by_model and entry.score and (before := population.entry(base).score):
        gain = entry.score / before
        interval = gain, gain
    elif entry.gain_low is not None and entry.gain_high is not None:
        interval = entry.gain_low, entry.gain_high
    return HypothesisTest(kernel=entry.name, base=base, verdict=entry.verdict, gain=gain, interval=interval)


def _state(
    base: str, plan: Experiment, made: Sequence[tuple[Entry, HypothesisTest]], population: Population
) -> HypothesisState:
    decisions = {decision for _, test in made if (decision := decided(test.interval, plan.uplift))}
    for state in (HypothesisState.SUPPORTED, HypothesisState.REFUTED):
        if state in decisions:
            return state
    made = [(entry, test) for entry, test in made if test.verdict is not Verdict.INFRASTRUCTURE]
    if made and all(test.verdict in FAILED for _, test in made):
        return HypothesisState.BLOCKED
    incumbent = population.incumbent()
    ahead = population.estimate(incumbent) - population.estimate(base) if incumbent else 0.0
    behind = not made and 100 * (2**ahead - 1) > plan.uplift[1] and ahead > 0
    return HypothesisState.OVERTAKEN if behind else HypothesisState.OPEN


def decided(interval: factors.Interval | None, uplift: tuple[float, float]) -> HypothesisState | None:
    """Return what a gain's interval decides; None if nothing.

    `uplift`: the predicted range in percent. A wide interval decides only if it lies outside of what was predicted.
    """
    if interval is None:
        return None
    low, high = interval
    if low > 1:
        return HypothesisState.SUPPORTED
    certainly_less = high < 1 + uplift[0] / 100
    return HypothesisState.REFUTED if certainly_less or factors.is_resolved(interval) else None


def stated(title: str) -> str:
    """Return what an experiment's title states: without the number of a writer's own idea. May be empty."""
    return _OWN_IDEA.sub("", title, count=1) if title.startswith(OWN_IDEA) else title


def plain(text: str) -> str:
    """Return a text without differences of case and space."""
    return " ".join(text.split()).casefold()
