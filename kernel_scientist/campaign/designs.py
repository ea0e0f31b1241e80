"""The designs of a campaign: what was planned, also what was not picked. They are recorded before experiments begin.

So a resumed campaign goes on with the plans that it had, and asks no designer again. Beside them lie the hypotheses
with their states, from which later campaigns learn what does not help.
"""

import contextlib
import threading
import time
from collections.abc import Iterable

from pydantic import TypeAdapter

from kernel_scientist.population.lineage import Population
from kernel_scientist.scientist.proposals import Design, Designed, Lessons, Refutation, Selection
from kernel_scientist.search import hypotheses, worth
from kernel_scientist.search.hypotheses import Hypothesis, HypothesisState, plain
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore

FOLDER, HYPOTHESES = "designs", "hypotheses.json"
"""Artifacts of a campaign's run."""
MOST_REFUTED, MOST_GAINS, MOST_PLANNED = 12, 3, 20
"""Refuted hypotheses of earlier campaigns in a prompt, measured gains of one of them, and plans that nobody tried."""
RECORD_S, PAUSE = 60.0, 20
"""Least time between two writes of the hypotheses, in seconds, and as a multiple of what the last one took; the latter
also between two times at which they are found out."""
RECORDS = TypeAdapter(tuple[Hypothesis, ...])


class Designs:
    """The designs of one campaign, and the hypotheses that follow from them and the kernels. Thread-safe."""

    def __init__(self, store: MlflowStore, run: CampaignRun, population: Population, least: float = 0.0) -> None:
        """`least`: gain in percent that is too small to be measured."""
        self._store, self._run, self._population, self._least = store, run, population, least
        self._by_generation = {one.generation: one for one in recorded(store, run)}
        self._names = {
            (one.selection.base, plain(plan.title)): plan.hypothesis
            for one in self._by_generation.values()
            for plan in one.design.plans
        }
        """Names of hypotheses by base and statement."""
        self._statements = {statement for _, statement in self._names}
        """What was planned, on any base."""
        self._lock = threading.Lock()
        self._known: tuple[tuple[int, int], list[Hypothesis]] = ((-1, -1), [])
        """The hypotheses, and the numbers of kernels and designs of which they are."""
        self._again_s = 0.0
        """When more kernels are reason enough to find out again, by the monotonic clock."""
        self._due_s = 0.0
        """When they are written again, by the monotonic clock."""

    def get(self, generation: int) -> tuple[Selection, Design] | None:
        """Return a generation's selection and design, if they are recorded."""
        found = self._by_generation.get(generation)
        return (found.selection, found.design) if found else None

    def add(self, generation: int, selection: Selection, design: Design) -> tuple[Selection, Design]:
        """Record a design, and now and then the hypotheses so far; return it, its plans with their hypotheses' names.

        A plan that repeats an earlier one on the same base is the same hypothesis.
        """
        with self._lock:
            plans = tuple(
                plan.model_copy(
                    update={"hypothesis": self._name(selection.base, plan.title, f"h{generation}.{number}")}
                )
                for number, plan in enumerate(design.plans, start=1)
            )
            named = design.model_copy(update={"plans": plans})
            one = Designed(generation=generation, selection=selection, design=named)
            self._store.log_text(self._run, f"{FOLDER}/{generation:06d}.json", one.model_dump_json(indent=1))
            self._by_generation[generation] = one
            if (began_s := time.monotonic()) >= self._due_s:
                self.record()
                self._due_s = time.monotonic() + max(RECORD_S, PAUSE * (time.monotonic() - began_s))
        return selection, named

    def _name(self, base: str, title: str, new: str) -> str:
        self._statements.add(plain(title))
        return self._names.setdefault((base, plain(title)), new)

    def hypotheses(self, latest: bool = False) -> list[Hypothesis]:
        """Return all hypotheses with their states, oldest first.

        The outcomes of the latest kernels may be missing, unless `latest`: all are found out again after a new design,
        and after new kernels once PAUSE times as long has passed as that took.
        """
        designs = [one for _, one in sorted(self._by_generation.copy().items())]
        version, known = (len(self._population), len(designs)), self._known
        if known[0] == version or (known[0][1] == version[1] and not latest and time.monotonic() < self._again_s):
            return known[1]
        began_s = time.monotonic()
        self._known = known = version, hypotheses.of(designs, self._population)
        self._again_s = time.monotonic() + PAUSE * (time.monotonic() - began_s)
        return known[1]

    def planned(self) -> tuple[str, ...]:
        """Return the latest plans that nobody has tried and whose gain could be measured, each with its base."""
        waiting = [one for one in self.hypotheses() if one.is_untried and worth.promises(one.experiment, self._least)]
        return tuple(f"{one.experiment.title} (on {one.base})" for one in waiting[-MOST_PLANNED:])

    def record(self) -> None:
        """Write the hypotheses with their states."""
        self._store.log_text(
            self._run, HYPOTHESES, RECORDS.dump_json(tuple(self.hypotheses(latest=True)), indent=1).decode()
        )

    def uncontradicted(self, lessons: Lessons) -> Lessons:
        """Return a campaign's findings without earlier refutations that its own kernels contradict."""
        if all(plain(one.statement) not in self._statements for one in lessons.refuted):  # which costs nothing
            return lessons
        supported = {one.statement for one in self.hypotheses() if one.state is HypothesisState.SUPPORTED}
        kept = tuple(one for one in lessons.refuted if plain(one.statement) not in supported)
        return lessons.model_copy(update={"refuted": kept})


def recorded(store: MlflowStore, run: CampaignRun) -> list[Designed]:
    """Read the designs of a campaign back; none for one of an older version.

    One that a kill left half written is left out: none of its experiments had begun.
    """
    found = list[Designed]()
    for text in store.texts(run.run_id, FOLDER):
        with contextlib.suppress(ValueError):
            found.append(Designed.model_validate_json(text))
    return found


def refuted(store: MlflowStore, campaigns: Iterable[CampaignRun]) -> tuple[Refutation, ...]:
    """Return what campaigns refuted, newest first, at most MOST_REFUTED. `campaigns`: the newest first.

    A statement that the same or a later campaign supports is left out, and so is a repeated or empty one.
    """
    done, found = {""}, list[Refutation]()
    for run in campaigns:
        known = _hypotheses(store, run)
        done |= {one.statement for one in known if one.state is HypothesisState.SUPPORTED}
        for one in reversed(known):
            if one.state is HypothesisState.REFUTED and one.statement not in done:
                alike = [o for o in known if o.state is HypothesisState.REFUTED and o.statement == one.statement]
                found.append(_refutation(alike, run.campaign))
                done.add(one.statement)
    return tuple(found[:MOST_REFUTED])


def _refutation(alike: list[Hypothesis], campaign: str) -> Refutation:
    """Return what a campaign refuted. `alike`: its refuted hypotheses with one statement, oldest first."""
    plan, gains = alike[-1].experiment, [test.words for one in alike for test in one.tests if test.interval]
    left_out = len(gains) - MOST_GAINS
    shown = (*gains[:MOST_GAINS], *([f"{left_out} more"] if left_out > 0 else []))
    return Refutation(statement=hypotheses.stated(plan.title), mechanism=plan.mechanism, gains=shown, campaign=campaign)


def _hypotheses(store: MlflowStore, run: CampaignRun) -> tuple[Hypothesis, ...]:
    """Return the hypotheses that a campaign recorded; none for one of an older version, or half written by a kill."""
    try:
        return RECORDS.validate_json(store.text(run, HYPOTHESES) or "[]")
    except ValueError:
        return ()
