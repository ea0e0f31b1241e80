"""The rule-based agent: it applies a catalogue of transformations and calls no model.

It is the baseline policy: it selects by measured speed, designs from the catalogue entries whose preconditions hold,
predicts from what the same entry gained before, and writes by editing the base's source. It does not repair: its
edits are deterministic, so the same edit would fail again.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

from kernel_scientist.compilers.source import KernelSource, SourceError
from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import CodeObject, Evaluation, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Language, digest
from kernel_scientist.scientist.context.outcomes import known_gain
from kernel_scientist.scientist.playbook import catalogue_triton, cpp
from kernel_scientist.scientist.playbook.cpp import crossover
from kernel_scientist.scientist.playbook.transformation import Transformation, Variant
from kernel_scientist.scientist.proposals import Avenue, Design, Draft, ExperimentTask, Lessons, Selection
from kernel_scientist.scientist.roles import Assignment, Step

EXPLORE = 0.2
"""Probability of changing one of the three best kernels instead of the best."""
CONTRASTED, RECENT_TRIALS = 100, 50
"""Fastest kernels among which a reference is chosen; latest trials of a transformation that count."""
LOW_OCCUPANCY = 2
"""Waves per SIMD that hide little latency: what limits occupancy then is worth relieving."""
CATALOGUES: dict[Language, tuple[Transformation, ...]] = {
    "cpp": cpp.CATALOGUE,
    "triton": catalogue_triton.CATALOGUE,
}
CROSSOVER = Transformation(
    "crossover", "The reference kernel's tunables may suit this structure too.", (-10, 20), 50, lambda source, cpu: []
)
Option = tuple[Transformation, Variant]


class RuleBasedAgent:
    """Applies the catalogue of the assignment's language."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.catalogue = CATALOGUES.get(assignment.language, ())
        self.variants = lru_cache(maxsize=8)(self._variants)  # a design and each of its plans need the same ones

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose the incumbent (sometimes one of the three fastest) and a reference kernel that beats it on a case."""
        ranked, best = population.ranked(CONTRASTED), population.best()
        if best is None:
            raise ValueError("no kernel in the population is correct: there is nothing to start from")
        base = step.rng.choice(ranked[:3]) if step.rng.random() < EXPLORE else best
        place = "the incumbent" if base.kernel.name == best.kernel.name else "one of the three fastest"
        reference, reason = _reference(base, ranked)
        rationale = f"{base.kernel.name} is {place} by the tests and estimates so far, {reason}"
        return Selection(base=base.kernel.name, reference=reference.kernel.name, rationale=rationale)

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List untried variants of the base: at most ten avenues, five plans.

        Entries that relieve the base's limits, by the performance model and the compiler, come first.
        """
        base = population.get(selection.base)
        options = self._untried(population, base.kernel, population.get(selection.reference).kernel)
        step.rng.shuffle(options)  # random order among equals
        limiting = limits(base.evaluation)
        options.sort(key=lambda option: not option[0].helps & limiting)
        plans = [(not t.helps & limiting, self._plan(population, t, v)) for t, v in options]
        plans = [plan for _, plan in sorted(plans, key=lambda p: (p[0], -sum(p[1].uplift)))]
        avenues = {t.name: Avenue(title=t.name, examine=t.hypothesis) for t, _ in options}
        return Design(avenues=tuple(avenues.values())[:10], plans=tuple(_diverse(plans, 5)))

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Apply the variant that the experiment names; for a model's plan, the one with the most words in common.

        Raises ValueError if nothing in the catalogue applies to the base.
        """
        base, experiment = population.get(task.base).kernel, task.experiment
        options = self.variants(base.source, population.get(task.reference).kernel.source)
        for transformation, variant in options:
            if _title(transformation, variant) == experiment.title:
                return Draft(source=variant.source.text, report="; ".join(variant.rubric))
        if not options:
            raise ValueError(f"experiment {experiment.title!r} does not apply to {base.name}")
        plan = _words(f"{experiment.title} {experiment.description} {' '.join(experiment.rubric)}")
        nearest, variant = max(options, key=lambda o: len(plan & _words(f"{_title(*o)} {o[0].hypothesis}")))
        report = f"nearest entry of the catalogue: {_title(nearest, variant)}; {'; '.join(variant.rubric)}"
        return Draft(source=variant.source.text, report=report)

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Return None: the edits are deterministic, so the same edit would fail again."""
        return None

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """State what came of every transformation; older figures are retracted.

        An average is stated only if the intervals of the measured pairs support it.
        """
        findings: list[tuple[str, Sequence[str]]] = []
        for transformation in (*self.catalogue, CROSSOVER):
            if trials := _trials(population, transformation.name):
                text = f"{transformation.name}: {_finding(population, trials)}"
                findings.append((text, [t.kernel.name for t in trials]))
        current = {text for text, _ in findings}
        return lessons.updated(findings, [f.name for f in lessons.findings if f.text not in current])

    def _untried(self, population: Population, base: Kernel, reference: Kernel) -> list[Option]:
        """Return the variants of the base whose source is new, each source once."""
        seen = set[str]()
        options: list[Option] = []
        for transformation, variant in self.variants(base.source, reference.source):
            key = digest(variant.source.text)
            if key not in seen and not population.has_source(key):
                seen.add(key)
                options.append((transformation, variant))
        return options

    def _variants(self, base: str, reference: str) -> list[Option]:
        source = KernelSource(base)
        options = [(t, v) for t in self.catalogue for v in t.apply(source, self.assignment.cpu)]
        try:
            options += [(CROSSOVER, v) for v in crossover(source, KernelSource(reference))]
        except SourceError:
            pass  # the reference kernel declares no tunables that can be read
        return options

    def _plan(self, population: Population, transformation: Transformation, variant: Variant) -> Experiment:
        gains = [100 * (ratio - 1) for ratio, _ in _gains(population, transformation.name)]
        low, high = ((bound + sum(gains)) / (1 + len(gains)) for bound in transformation.uplift)
        basis = f"measured {len(gains)} times in this campaign" if gains else "not yet measured in this campaign"
        return Experiment(
            title=_title(transformation, variant),
            description=f"{transformation.hypothesis} Predicted from the catalogue, {basis}.",
            rubric=variant.rubric,
            uplift=(round(low, 1), round(high, 1)),
            innovation=transformation.innovation // (1 + len(gains)),
        )


def limits(evaluation: Evaluation) -> frozenset[str]:
    """Return a kernel's limits: the resource that limits most cases by prediction, and what its code objects lack.

    All cases count alike, as in a geometric mean. Of two resources that limit equally many cases, the one with the
    larger share of the time is returned.
    """
    cases, shares = Counter[str](), defaultdict[str, float](float)
    for case in evaluation.predictions:
        cases[case.limited_by] += 1
        shares[case.limited_by] += case.breakdown_us.get(case.limited_by, case.time_us) / max(case.time_us, 1e-9)
    dominant = max(cases, key=lambda name: (cases[name], shares[name], name), default=None)
    objects = evaluation.compile.objects if evaluation.compile else ()
    lacking = {name for code in objects for name in _lacks(code)}
    return frozenset(lacking | ({dominant} if dominant else set()))


def _lacks(code: CodeObject) -> set[str]:
    """Return what limits a code object's occupancy: `registers`, `capacity` of local memory."""
    limit = code.limited_by if 0 < code.occupancy <= LOW_OCCUPANCY else ""
    lacking = {"registers"} if code.spills or limit == "registers" else set[str]()
    return lacking | ({"capacity"} if limit == "lds" else set[str]())


def _reference(base: Trial, ranked: Sequence[Trial]) -> tuple[Trial, str]:
    """Return the reference kernel and the reason: one that beats the base on a case, its parent, or the next best.

    "Beats" means in a run that timed both.
    """
    others = [trial for trial in ranked if trial.kernel.name != base.kernel.name]
    for other in others:
        if wins := _wins(other, base):
            return other, f"{other.kernel.name} is faster on {wins[0]}"
    parent = next((t for t in others if t.kernel.name == base.kernel.base), None)
    if parent is not None:
        return parent, f"{parent.kernel.name} is its base"
    other = next(iter(others), base)
    return other, f"{other.kernel.name} is the next best"


def _wins(other: Trial, base: Trial) -> list[str]:
    """Return the cases on which `other` is certainly faster than `base`."""
    ours = other.evaluation.speedup_over(base.kernel.name)
    theirs = base.evaluation.speedup_over(other.kernel.name)
    wins = [case for case, pair in (ours.cases if ours else {}).items() if pair.interval and pair.interval[0] > 1]
    return wins + [c for c, pair in (theirs.cases if theirs else {}).items() if pair.interval and pair.interval[1] < 1]


def _title(transformation: Transformation, variant: Variant) -> str:
    return f"{transformation.name}: {variant.detail}"


def _gains(population: Population, name: str) -> list[tuple[float, factors.Interval]]:
    """Return the gains over the base of the latest trials of a transformation, as factors with their intervals.

    One that failed gains nothing; one that was not measured beside its base, or is not resolved, is left out.
    """
    trials = _trials(population, name)
    known = [known_gain(population, t) if score(t) else (1.0, (1.0, 1.0)) for t in trials]
    return [gain for gain in known if gain is not None]


def _finding(population: Population, trials: Sequence[Trial]) -> str:
    """Return what came of trials, in words."""
    gains = [gain for t in trials if score(t) and (gain := known_gain(population, t)) is not None]
    failed = sum(not score(t) for t in trials)
    others = [f"{failed} failed"] if failed else []
    others += [f"{n} without a resolved gain"] if (n := len(trials) - len(gains) - failed) else []
    if not gains:
        return f"no gain or loss was measured in {len(trials)} trials: {', '.join(others)}"
    ratio, interval = factors.mean(gains)
    kind, mean = "measured beside their bases", factors.percent(ratio, interval)
    if trials[0].evaluation.by_model:
        kind, mean = "predicted", f"{100 * (ratio - 1):+.1f} %"
    return f"{mean} of speed on average over {len(gains)} trials, {kind}{''.join(f'; {o}' for o in others)}"


def _trials(population: Population, name: str) -> list[Trial]:
    return [population.get(kernel) for kernel in population.titled(name, RECENT_TRIALS)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{2,}", text.lower()))


def _diverse(plans: Sequence[Experiment], count: int) -> list[Experiment]:
    """Return `count` plans in order, but first one per transformation."""
    first, rest, names = list[Experiment](), list[Experiment](), set[str]()
    for plan in plans:
        name = plan.title.split(":")[0]
        (rest if name in names else first).append(plan)
        names.add(name)
    return [*first, *rest][:count]
