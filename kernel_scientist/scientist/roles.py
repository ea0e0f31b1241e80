"""The minds' protocol: select, design, write, repair, distil. A language model and the playbook implement it."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kernel_scientist.hardware import cpu
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import Machine, this_cpu
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem, Profile
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Ask, Experiment, Language, digest
from kernel_scientist.scientist.context.knowledge import Digest


class Selection(Record):
    """The Selector's choice, by name."""

    base: str
    reference: str
    rationale: str
    asks: tuple[Ask, ...] = ()


class Avenue(Record):
    """A direction worth examining, before it is a plan."""

    title: str
    examine: str


class Design(Record):
    """What the Designer returns: ten avenues at most, five plans at most."""

    avenues: tuple[Avenue, ...]
    plans: tuple[Experiment, ...]
    asks: tuple[Ask, ...] = ()


class Commission(Record):
    """What the Writer is to do: the name that the kernel will have, what it starts from, the experiment."""

    name: str
    base: str
    reference: str
    experiment: Experiment

    @property
    def place(self) -> str:
        """Where it stands in the campaign: what is commissioned tells it, for names come free again."""
        return f"{self.name}-{digest(f'{self.base} {self.reference} {self.experiment.title}')[:8]}"


class Draft(Record):
    """What the Writer returns, or the Repairer."""

    source: str
    report: str
    critique: str = ""
    """What the Repairer says was wrong."""
    asks: tuple[Ask, ...] = ()
    unreadable: bool = False
    """No reply held a kernel; the source only says so."""


class Finding(Record):
    """Something that was learnt: short, dated, with the kernels that support it."""

    name: str
    text: str
    kernels: tuple[str, ...]
    date: str
    runs: tuple[str, ...] = ()
    """Ids of the MLflow runs of those kernels."""
    struck: str = ""
    """When a later measurement contradicted it."""


class Lessons(Record):
    """The findings of a campaign, oldest first."""

    findings: tuple[Finding, ...] = ()
    generation: int = 0
    """When something was distilled last."""
    asks: tuple[Ask, ...] = ()
    """What the latest distillation was asked."""

    def shown(self, most: int) -> list[Finding]:
        """Return what still holds, newest first."""
        return [f for f in reversed(self.findings) if not f.struck][:most]

    def cited(self, run_ids: Mapping[str, str]) -> "Lessons":
        """Return the lessons with the run ids, by kernel's name, of what supports them."""
        cited = [
            f.model_copy(update={"runs": tuple(run_ids[k] for k in f.kernels if k in run_ids)}) for f in self.findings
        ]
        return self.model_copy(update={"findings": tuple(cited)})

    def changed(
        self, found: Sequence[tuple[str, Sequence[str]]], struck: Sequence[str], asks: tuple[Ask, ...]
    ) -> "Lessons":
        """Return the lessons with new findings (text, kernels), and without those that were contradicted."""
        today = time.strftime("%Y-%m-%d")
        kept = [
            f.model_copy(update={"struck": today}) if f.name in struck and not f.struck else f for f in self.findings
        ]
        known = {f.text for f in kept}
        fresh = [
            Finding(name=f"f{len(kept) + i:03d}", text=text[:1000], kernels=tuple(kernels), date=today)
            for i, (text, kernels) in enumerate([n for n in found if n[0] not in known], start=1)
        ]
        return Lessons(findings=(*kept, *fresh), asks=asks)


@dataclass(frozen=True)
class Facts:
    """What this machine is: sizes in bytes."""

    caches: dict[str, int]
    features: frozenset[str]
    vector_bytes: int
    cores: int
    model: str = "this CPU"

    @staticmethod
    def here() -> "Facts":
        """Return the facts of this CPU."""
        return Facts(cpu.caches(), cpu.features(), cpu.vector_bytes(), cpu.cores(), cpu.model())


@dataclass(frozen=True)
class Assignment:
    """What a mind works on; the same for all its calls in a campaign."""

    problem: Problem
    profile: Profile
    language: Language
    target: str
    facts: Facts
    peaks: Machine = field(default_factory=this_cpu)
    gpu: Gpu | None = None
    """The GPU that kernels run on, or whose model predicts them; None: this CPU, or a GPU in no table."""
    knowledge: tuple[Digest, ...] = ()
    knowledge_tokens: int = 0
    most_findings: int = 0


@dataclass(frozen=True)
class Turn:
    """Whose turn it is: the number of the generation, and chance that depends on nothing but it and the seed."""

    generation: int
    rng: random.Random

    @staticmethod
    def of(seed: int | str, purpose: str, generation: int) -> "Turn":
        """Return a turn for a purpose. Drawn again it is the same: a resumed campaign goes on as it would have."""
        return Turn(generation, random.Random(f"{seed}/{purpose}/{generation}"))


class Mind(Protocol):
    """Something that can run experiments. Calls may block (a model thinks); none touches the device."""

    name: str

    def select(self, population: Population, lessons: Lessons, turn: Turn) -> Selection:
        """Choose the kernel to change and the one to contrast it with."""
        ...

    def design(self, population: Population, selection: Selection, lessons: Lessons, turn: Turn) -> Design:
        """List avenues and plans for the base."""
        ...

    def write(self, population: Population, order: Commission, lessons: Lessons) -> Draft:
        """Carry an experiment out on the base's source."""
        ...

    def repair(self, population: Population, order: Commission, failed: Trial, lessons: Lessons) -> Draft | None:
        """Mend a kernel that failed, or None when this mind cannot."""
        ...

    def distil(self, population: Population, lessons: Lessons, turn: Turn) -> Lessons:
        """State what was learnt so far, as short findings, beside what was known."""
        ...


def _innovation(plan: Experiment) -> float:
    return plan.innovation


def _highest(plan: Experiment) -> float:
    return plan.uplift[1]


def _lowest(plan: Experiment) -> float:
    return plan.uplift[0]


def pick(plans: Sequence[Experiment], count: int = 3) -> list[Experiment]:
    """Choose experiments by rule, without replacement: the most innovative, the highest maximum uplift, the highest
    minimum; further ones by maximum (GPU Kernel Scientist, section 3.2)."""
    rest, chosen = list(plans), list[Experiment]()
    rules: list[Callable[[Experiment], float]] = [_innovation, _highest, _lowest]
    for turn in range(min(count, len(rest))):
        rule = rules[turn] if turn < len(rules) else _highest
        best = max(rest, key=rule)
        chosen.append(best)
        rest.remove(best)
    return chosen
