"""What a prompt shows of the neighbourhood of a kernel: STARK's context windows (arXiv 2510.16996, section 3.4).

For kernel i: planning sees its children and the leaders outside its line; coding sees its children and the children of
its siblings; debugging sees its siblings. At most five are shown, drawn by lot.
"""

import random
from collections.abc import Iterable

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial

CAP = 5
LEADERS = 2


def plan(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return what planning on a kernel may look at."""
    below = {t.kernel.name for t in descendants(population, name)}
    leaders = [t for t in population.ranked() if t.kernel.name not in below | {name}][:LEADERS]
    return _capped([*population.children(name), *leaders], name, rng)


def code(population: Population, name: str, rng: random.Random) -> list[Trial]:
    """Return what writing a child of a kernel may look at."""
    cousins = [c for s in siblings(population, name) for c in population.children(s.kernel.name)]
    return _capped([*population.children(name), *cousins], name, rng)


def debug(population: Population, base: str, rng: random.Random) -> list[Trial]:
    """Return what mending a child of `base` may look at: its siblings."""
    return _capped(population.children(base), base, rng)


def siblings(population: Population, name: str) -> list[Trial]:
    """Return the other kernels made from the same base; none for a seed."""
    parent = population.get(name).kernel.base
    return [t for t in population.children(parent) if t.kernel.name != name] if parent else []


def descendants(population: Population, name: str) -> list[Trial]:
    """Return the kernels that come from one, directly or not."""
    found, waiting = list[Trial](), [name]
    while waiting:
        children = population.children(waiting.pop())
        found += children
        waiting += [c.kernel.name for c in children]
    return found


def _capped(trials: Iterable[Trial], centre: str, rng: random.Random) -> list[Trial]:
    different = list({t.kernel.name: t for t in trials if t.kernel.name != centre}.values())
    chosen = different if len(different) <= CAP else rng.sample(different, CAP)
    return sorted(chosen, key=lambda t: t.kernel.name)
