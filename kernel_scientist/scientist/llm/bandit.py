"""Which of several models writes next: the upper bound of its gain per dollar (UCB1, Auer et al. 2002, with costs).

All of it is derived from the recorded kernels, so that a resumed campaign chooses as it would have.
"""

import math
import statistics
from collections.abc import Sequence

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import Model

EXPLORE = 0.5
"""Weight of what is not known; rewards lie between 0 and 1."""


def choose(population: Population, role: str, models: Sequence[Model]) -> str:
    """Return the name of the model to ask: each once, in order, then the one with the highest bound.

    A model's worth is its mean reward divided by the root of what its kernels cost relative to the cheapest model's: a
    gain is worth more than a dollar saved.
    """
    arms = {m.model: [t for t in population if _author(t, role) == m.model] for m in models}
    for name, tried in arms.items():
        if not tried:
            return name
    total = sum(map(len, arms.values()))
    costs = {name: statistics.mean(_usd(t) for t in tried) for name, tried in arms.items()}
    paid = [c for c in costs.values() if c > 0]

    def bound(name: str) -> float:
        tried = arms[name]
        worth = statistics.mean(reward(population, t) for t in tried)
        dear = math.sqrt(min(paid) / costs[name]) if costs[name] > 0 else 1.0
        return worth * dear + EXPLORE * math.sqrt(2 * math.log(total) / len(tried))

    return max(arms, key=bound)


def reward(population: Population, trial: Trial) -> float:
    """Return what a kernel was worth: 0 a failure, 0.25 right, up to 1 for twice its base's speed."""
    gain = population.uplift(trial)
    if not score(trial) or gain is None:
        return 0.0
    return 0.25 + 0.75 * min(max(gain, 0.0), 100.0) / 100


def _author(trial: Trial, role: str) -> str:
    author = trial.kernel.authors.get(role)
    return author.model if author else ""


def _usd(trial: Trial) -> float:
    return sum(ask.usd for ask in trial.kernel.asks)
