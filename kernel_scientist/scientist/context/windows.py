"""Related kernels that a prompt includes: STARK's context windows (arXiv 2510.16996, section 3.4).

For kernel i: the designer gets the best kernels of other lines; the writer its children and its siblings' children;
the repairer its siblings. At most five, chosen at random. The distiller gets the best, the most surprising and failed
kernels.
"""

import itertools
import random
from collections.abc import Iterable

from kernel_scientist.population.entry import order
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist.context import outcomes

MOST = 5
LEADERS = 2
MOST_RANKED = 100
"""Ranked kernels, siblings, generations and latest kernels that are looked at, however many there are."""
BEST, SURPRISES, FAILURES = 3, 3, 2
"""Kernels of each kind for the distiller."""


def for_design(population: Population, name: str) -> list[Trial]:
    """Return the fastest kernels of other lines than a kernel's; its own line is part of `outcomes.tried`."""
    others = (e.name for e in population.ranking(MOST_RANKED) if not descends(population, e.name, name))
    return [population.get(other) for other in itertools.islice(others, LEADERS)]


def for_writing(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for writing a child of a kernel."""
    cousins = [c for s in siblings(population, name)[-MOST_RANKED:] for c in population.children(s)]
    return _sampled(population, [*population.children(name), *cousins], name, rng)


def for_repair(population: Population, base: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for repairing a child of `base`: its siblings."""
    return _sampled(population, population.children(base), base, rng)


def for_distilling(population: Population, rng: random.Random) -> list[Trial]:
    """Return the fastest kernels that an experiment made, those that surprised most, and a sample of failures."""
    best = [e.name for e in population.ranking(MOST_RANKED) if e.title][:BEST]
    latest = [(outcomes.surprise(population, t), t.kernel.name) for t in population.latest(MOST_RANKED)]
    surprises = [name for miss, name in sorted(latest, reverse=True) if miss and name not in best][:SURPRISES]
    failures = population.failures(MOST_RANKED)
    failed = rng.sample(failures, min(FAILURES, len(failures)))
    names = {*best, *surprises, *failed} or {e.name for e in population.ranking(BEST)}
    return [population.get(name) for name in sorted(names, key=order)]


def siblings(population: Population, name: str) -> list[str]:
    """Return the names of the other kernels with the same base; none for a seed."""
    parent = population.entry(name).base
    return [n for n in population.children(parent) if n != name] if parent else []


def descends(population: Population, name: str, ancestor: str) -> bool:
    """Whether a kernel is `ancestor` or descends from it, within MOST_RANKED generations."""
    line: str | None = name
    for _ in range(MOST_RANKED):
        if line is None or line == ancestor:
            break
        line = population.entry(line).base
    return line == ancestor


def _sampled(population: Population, names: Iterable[str], excluded: str, rng: random.Random) -> list[Trial]:
    distinct = [name for name in dict.fromkeys(names) if name != excluded]
    chosen = distinct if len(distinct) <= MOST else rng.sample(distinct, MOST)
    return [population.get(name) for name in sorted(chosen, key=order)]
