"""The playbook: a mind without a model. It works through a written catalogue of transformations.

It is a real search and an honest control: it selects by measured speed, designs from the catalogue's entries whose
preconditions hold, predicts from what the same entry gave before, and writes by editing the base's source. It invents
nothing. It does not repair: its edits are deterministic, so the same edit would fail again.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

from kernel_scientist.compile.source import KernelSource, SourceError
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import CodeObject, Evaluation, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Language, digest
from kernel_scientist.scientist.playbook import catalogue_cpp, catalogue_triton
from kernel_scientist.scientist.playbook.edits_cpp import crossover
from kernel_scientist.scientist.playbook.transformation import Transformation, Variant
from kernel_scientist.scientist.roles import Assignment, Avenue, Commission, Design, Draft, Lessons, Selection, Turn

EXPLORE = 0.2
"""Chance of changing one of the three best kernels rather than the best."""
LOW_OCCUPANCY = 2
"""Waves per SIMD that hardly hide latency, so that what holds occupancy down is worth relieving."""
CATALOGUES: dict[Language, tuple[Transformation, ...]] = {
    "cpp": catalogue_cpp.CATALOGUE,
    "triton": catalogue_triton.CATALOGUE,
}
CROSSOVER = Transformation(
    "crossover", "The reference kernel's tunables may suit this structure too.", (-10, 20), 50, lambda source, facts: []
)


class Playbook:
    """The catalogue, applied to an assignment."""

    name = "playbook"

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.catalogue = CATALOGUES.get(assignment.language, ())
        self._edits = lru_cache(maxsize=8)(self._edit)  # a design and each of its plans ask for the same

    def select(self, population: Population, lessons: Lessons, turn: Turn) -> Selection:
        """Take the incumbent (sometimes one of the three quickest); contrast it with one that beats it on a case."""
        ranked, best = population.ranked(), population.best()
        if best is None:
            raise ValueError("no kernel in the population is right: there is nothing to start from")
        base = turn.rng.choice(ranked[:3]) if turn.rng.random() < EXPLORE else best
        reference, why = self._reference(base, ranked)
        rationale = f"{base.kernel.name} runs at {score(base):.2f}x the reference's speed, {why}"
        return Selection(base=base.kernel.name, reference=reference.kernel.name, rationale=rationale)

    def design(self, population: Population, selection: Selection, lessons: Lessons, turn: Turn) -> Design:
        """List what applies to the base and was not tried: at most ten avenues, five plans.

        First comes what relieves the limits that a model and the compiler see for the base, if they saw it.
        """
        base = population.get(selection.base)
        other = population.get(selection.reference)
        options = self._options(population, base.kernel, other.kernel)
        turn.rng.shuffle(options)  # among equals, chance decides
        found = limits(base.evaluation)
        options.sort(key=lambda option: not option[0].helps & found)
        plans = [(not t.helps & found, self._plan(population, t, v)) for t, v in options]
        plans = [plan for _, plan in sorted(plans, key=lambda p: (p[0], -sum(p[1].uplift)))]
        avenues = {t.name: Avenue(title=t.name, examine=t.hypothesis) for t, _ in options}
        return Design(avenues=tuple(avenues.values())[:10], plans=tuple(_varied(plans, 5)))

    def write(self, population: Population, order: Commission, lessons: Lessons) -> Draft:
        """Make the edit that the experiment names; of another mind's plan the one that shares most words with it.

        Raises ValueError when nothing of the catalogue applies to the base.
        """
        base, reference = population.get(order.base).kernel, population.get(order.reference).kernel
        variants = self._variants(base, reference)
        for transformation, variant in variants:
            if _title(transformation, variant) == order.experiment.title:
                return Draft(source=variant.source.text, report="; ".join(variant.rubric))
        if not variants:
            raise ValueError(f"experiment {order.experiment.title!r} does not apply to {base.name}")
        wanted = _words(f"{order.experiment.title} {order.experiment.description} {' '.join(order.experiment.rubric)}")
        near, variant = max(variants, key=lambda v: len(wanted & _words(f"{_title(*v)} {v[0].hypothesis}")))
        report = f"of the catalogue, what is nearest to the plan: {_title(near, variant)}; {'; '.join(variant.rubric)}"
        return Draft(source=variant.source.text, report=report)

    def repair(self, population: Population, order: Commission, failed: Trial, lessons: Lessons) -> Draft | None:
        """Return None: what failed once by a deterministic edit would fail again."""
        return None

    def distil(self, population: Population, lessons: Lessons, turn: Turn) -> Lessons:
        """State the measured uplift of every transformation that was tried; older figures are struck."""
        findings: list[tuple[str, Sequence[str]]] = []
        for transformation in (*self.catalogue, CROSSOVER):
            gains = _measured(population, transformation.name)
            if gains:
                mean = sum(gains) / len(gains)
                text = f"{transformation.name}: {mean:+.1f} % of speed on average over {len(gains)} trials"
                findings.append((text, [t.kernel.name for t in _trials(population, transformation.name)]))
        old = [f.name for f in lessons.findings if f.text not in {text for text, _ in findings}]
        return lessons.changed(findings, old, ())

    def _reference(self, base: Trial, ranked: Sequence[Trial]) -> tuple[Trial, str]:
        mine = {t.case: t.time_us for t in base.evaluation.timings}
        for other in ranked:
            wins = [t.case for t in other.evaluation.timings if t.case in mine and t.time_us < mine[t.case]]
            if other is not base and wins:
                return other, f"{other.kernel.name} is quicker on {wins[0]}"
        parent = next((t for t in ranked if t.kernel.name == base.kernel.base), None)
        if parent is not None:
            return parent, f"{parent.kernel.name} is what it was changed from"
        other = next((t for t in ranked if t is not base), base)
        return other, f"{other.kernel.name} is the next best"

    def _options(self, population: Population, base: Kernel, other: Kernel) -> list[tuple[Transformation, Variant]]:
        """Return what can be done to the base, each resulting source once and none that was tried."""
        seen = set(population.digests())
        out: list[tuple[Transformation, Variant]] = []
        for transformation, variant in self._variants(base, other):
            if (key := digest(variant.source.text)) not in seen:
                seen.add(key)
                out.append((transformation, variant))
        return out

    def _variants(self, base: Kernel, other: Kernel) -> list[tuple[Transformation, Variant]]:
        return self._edits(base.source, other.source)

    def _edit(self, base: str, other: str) -> list[tuple[Transformation, Variant]]:
        source = KernelSource(base)
        out = [(t, v) for t in self.catalogue for v in t.apply(source, self.assignment.facts)]
        try:
            out += [(CROSSOVER, v) for v in crossover(source, KernelSource(other))]
        except SourceError:
            pass  # the other file cannot be read as a kernel of ours: nothing to cross with
        return out

    def _plan(self, population: Population, transformation: Transformation, variant: Variant) -> Experiment:
        gains = _measured(population, transformation.name)
        low, high = transformation.uplift
        low, high = ((bound + sum(gains)) / (1 + len(gains)) for bound in (low, high))
        basis = f"measured {len(gains)} times here" if gains else "not yet measured here"
        return Experiment(
            title=_title(transformation, variant),
            description=f"{transformation.hypothesis} Predicted from the catalogue, {basis}.",
            rubric=variant.rubric,
            uplift=(round(low, 1), round(high, 1)),
            innovation=transformation.innovation // (1 + len(gains)),
        )


def limits(evaluation: Evaluation) -> frozenset[str]:
    """Return what limits a kernel: the resource that limits most cases as predicted, and what its code objects lack.

    Cases count alike, as in a geometric mean; of two resources that limit as many, the one that takes longer.
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
    """Return what a code object has too little of: `registers`, `capacity` of local memory."""
    low = code.limited_by if 0 < code.occupancy <= LOW_OCCUPANCY else ""
    held = {"registers": "registers", "lds": "capacity"}.get(low)
    return ({held} if held else set()) | ({"registers"} if code.spills else set())


def _title(transformation: Transformation, variant: Variant) -> str:
    return f"{transformation.name}: {variant.detail}"


def _measured(population: Population, name: str) -> list[float]:
    """Return the measured uplifts in percent of all trials of a transformation."""
    return [gain for t in _trials(population, name) if (gain := population.uplift(t)) is not None]


def _trials(population: Population, name: str) -> list[Trial]:
    return [t for t in population if t.kernel.experiment and t.kernel.experiment.title.split(":")[0] == name]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{2,}", text.lower()))


def _varied(plans: Sequence[Experiment], count: int) -> list[Experiment]:
    """Return the first `count` plans, at first one per transformation."""
    first, rest, seen = list[Experiment](), list[Experiment](), set[str]()
    for plan in plans:
        name = plan.title.split(":")[0]
        (rest if name in seen else first).append(plan)
        seen.add(name)
    return [*first, *rest][:count]
