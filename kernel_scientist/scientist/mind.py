"""The minds' protocol: select, design, write, repair, distil. A language model and the playbook implement it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernel_scientist.machine import cpu
from kernel_scientist.population import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import Experiment, Kernel, Language, Record, Trial


class Selection(Record):
    """The Selector's choice, by name."""

    base: str
    reference: str
    rationale: str


class Avenue(Record):
    """A direction worth examining, before it is a plan."""

    title: str
    examine: str


class Design(Record):
    """What the Designer returns: ten avenues at most, five plans at most."""

    avenues: tuple[Avenue, ...]
    plans: tuple[Experiment, ...]


class Draft(Record):
    """What the Writer returns."""

    source: str
    report: str


@dataclass(frozen=True)
class Facts:
    """What this machine is: sizes in bytes."""

    caches: dict[str, int]
    features: frozenset[str]
    vector_bytes: int
    cores: int

    @staticmethod
    def here() -> "Facts":
        """Return the facts of this CPU."""
        return Facts(cpu.caches(), cpu.features(), cpu.vector_bytes(), cpu.cores())


@dataclass(frozen=True)
class Assignment:
    """What a mind works on; the same for all its calls in a campaign."""

    problem: Problem
    language: Language
    facts: Facts


class Mind(Protocol):
    """Something that can run experiments. Calls may block (a model thinks); none touches the device."""

    name: str

    def select(self, population: Population, rng: random.Random) -> Selection:
        """Choose the kernel to change and the one to contrast it with."""
        ...

    def design(self, population: Population, selection: Selection, rng: random.Random) -> Design:
        """List avenues and plans for the base."""
        ...

    def write(self, base: Kernel, reference: Kernel, experiment: Experiment) -> Draft:
        """Carry an experiment out on the base's source."""
        ...

    def repair(self, trial: Trial) -> Draft | None:
        """Mend a kernel that failed, or None when this mind cannot."""
        ...

    def distil(self, population: Population, rng: random.Random) -> Sequence[str]:
        """State what was learnt so far, as short findings."""
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
