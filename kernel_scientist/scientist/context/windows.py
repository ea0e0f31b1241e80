"""Related kernels that a prompt includes: STARK's context windows (arXiv 2510.16996, section 3.4).

For kernel i: the designer gets its children and the best kernels of other lines; the writer its children and its
siblings' children; the repairer its siblings. At most five, chosen at random.
"""

import random
from collections.abc import Iterable

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial

MOST = 5
LEADERS = 2


def for_design(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for designing experiments on a kernel."""
    below = {t.kernel.name for t in descendants(population, name)}
    leaders = [t for t in population.ranked() if t.kernel.name not in below | {name}][:LEADERS]
    return _sampled([*population.children(name), *leaders], name, rng)


def for_writing(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for writing a child of a kernel."""
    cousins = [c for s in siblings(population, name) for c in population.children(s.kernel.name)]
    return _sampled([*population.children(name), *cousins], name, rng)


def for_repair(population: Population, base: str, rng: random.Random) -> list[Trial]:
    """Return the related kernels for repairing a child of `base`: its siblings."""
    return _sampled(population.children(base), base, rng)


def siblings(population: Population, name: str) -> list[Trial]:
    """Return the other kernels with the same base; none for a seed."""
    parent = population.get(name).kernel.base
    return [t for t in population.children(parent) if t.kernel.name != name] if parent else []


def descendants(population: Population, name: str) -> list[Trial]:
    """Return the children of a kernel, their children and so on."""
    trials, queue = list[Trial](), [name]
    while queue:
        children = population.children(queue.pop())
        trials += children
        queue += [c.kernel.name for c in children]
    return trials


def _sampled(trials: Iterable[Trial], excluded: str, rng: random.Random) -> list[Trial]:
    distinct = list({t.kernel.name: t for t in trials if t.kernel.name != excluded}.values())
    chosen = distinct if len(distinct) <= MOST else rng.sample(distinct, MOST)
    return sorted(chosen, key=lambda t: t.kernel.name)
