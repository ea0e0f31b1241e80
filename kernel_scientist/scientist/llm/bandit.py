"""Which of several models writes the next kernel, by what each has gained so far (`llm.choice: bandit`)."""

import math
import statistics
from collections.abc import Sequence

from kernel_scientist.population.entry import Entry
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.params import Model

WINDOW = 500
"""Kernels of each model that count: the latest."""
EXPLORE = 0.5
"""Weight of the exploration term; rewards lie between 0 and 1."""


def choose(population: Population, models: Sequence[Model]) -> str:
    """Return the next writer among several models by its upper confidence bound (UCB1, Auer et al. 2002, with costs).

    Each is called once, in order, then the one with the highest bound. Everything is derived from the recorded kernels,
    so a resumed campaign chooses as it would have.

    The bound is that of the mean reward, divided by the square root of the model's cost per kernel relative to the
    cheapest model's: a gain counts more than the same factor in cost.
    """
    arms = {m.model: [population.entry(name) for name in population.written_by(m.model, WINDOW)] for m in models}
    for name, entries in arms.items():
        if not entries:
            return name
    total = sum(map(len, arms.values()))
    costs = {name: statistics.mean(entry.usd for entry in entries) for name, entries in arms.items()}
    paid = [c for c in costs.values() if c > 0]

    def bound(name: str) -> float:
        entries = arms[name]
        mean = statistics.mean(reward(population, entry) for entry in entries)
        cost_factor = math.sqrt(min(paid) / costs[name]) if costs[name] > 0 else 1.0
        return mean * cost_factor + EXPLORE * math.sqrt(2 * math.log(total) / len(entries))

    return max(arms, key=bound)


def reward(population: Population, entry: Entry) -> float:
    """Return a kernel's reward: 0 for a failure, 0.25 if correct, up to 1 for twice its base's speed.

    A gain that was not measured beside the base, or is not resolved, counts as none.
    """
    base = population.entry(entry.base).score if entry.base and entry.base in population else 0.0
    if not entry.score or not base:
        return 0.0
    gain = entry.score / base if entry.by_model else entry.gain or 1.0
    return 0.25 + 0.75 * min(max(gain - 1, 0.0), 1.0)
