"""Which kernel next: strategies over a population. Each is a pure choice with an explicit source of chance."""

import random
from typing import Literal

from kernel_scientist.population import Population
from kernel_scientist.scientist.mind import Lessons, Mind, Selection

Strategy = Literal["scientist", "greedy"]


def select(strategy: Strategy, mind: Mind, population: Population, lessons: Lessons, rng: random.Random) -> Selection:
    """Return base and reference kernel. Raises ValueError when no kernel is right."""
    if strategy == "scientist":
        return mind.select(population, lessons, rng)
    return greedy(population)


def greedy(population: Population) -> Selection:
    """Take the fastest kernel, and the one it came from: the control without judgement."""
    best = population.best()
    if best is None:
        raise ValueError("no kernel in the population is right: there is nothing to start from")
    parent = best.kernel.base or best.kernel.name
    return Selection(base=best.kernel.name, reference=parent, rationale="the fastest kernel and its parent")
