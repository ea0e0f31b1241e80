"""Chooses the next writer among several models by its upper confidence bound (UCB1, Auer et al. 2002, with costs).

Everything is derived from the recorded kernels, so a resumed campaign chooses as it would have.
"""

import math
import statistics
from collections.abc import Sequence

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import Model

EXPLORE = 0.5
"""Weight of the exploration term; rewards lie between 0 and 1."""


def choose(population: Population, role: str, models: Sequence[Model]) -> str:
    """Return the name of the model to call: each once, in order, then the one with the highest bound.

    The bound is that of the mean reward, divided by the square root of the model's cost per kernel relative to the
    cheapest model's: a gain counts more than the same factor in cost.
    """
    arms = {m.model: [t for t in population if _author(t, role) == m.model] for m in models}
    for name, trials in arms.items():
        if not trials:
            return name
    total = sum(map(len, arms.values()))
    costs = {name: statistics.mean(_usd(t) for t in trials) for name, trials in arms.items()}
    paid = [c for c in costs.values() if c > 0]

    def bound(name: str) -> float:
        trials = arms[name]
        mean = statistics.mean(reward(population, t) for t in trials)
        cost_factor = math.sqrt(min(paid) / costs[name]) if costs[name] > 0 else 1.0
        return mean * cost_factor + EXPLORE * math.sqrt(2 * math.log(total) / len(trials))

    return max(arms, key=bound)


def reward(population: Population, trial: Trial) -> float:
    """Return a kernel's reward: 0 for a failure, 0.25 if correct, up to 1 for twice its base's speed."""
    gain = population.uplift(trial)
    if not score(trial) or gain is None:
        return 0.0
    return 0.25 + 0.75 * min(max(gain, 0.0), 100.0) / 100


def _author(trial: Trial, role: str) -> str:
    author = trial.kernel.authors.get(role)
    return author.model if author else ""


def _usd(trial: Trial) -> float:
    return sum(call.usd for call in trial.kernel.llm_calls)
