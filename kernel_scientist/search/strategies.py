"""Strategies that select the next base kernel. Each is a pure function of the population and a random generator, so a
resumed campaign continues as it would have: the recorded kernels are the only state.

    scientist   an agent selects (GPU Kernel Scientist, arXiv 2506.20807)
    tree        epsilon-greedy over the tree of kernels (STARK, arXiv 2510.16996, with its published parameters)
    islands     elites of cells of measured features, one island a seed, with migration (MAP-Elites)
    fsr         the best of the previous generation (CUDA-LLM's N x D loop, arXiv 2506.09092)
    hypotheses  the experiments that are worth most, of all designs (`search.worth`); a new design is on the fastest
                kernel, until SWITCH_AFTER experiments on it gained nothing
    best_of_n   always the best seed: independent attempts, the control without search
    greedy      always the fastest: the control without exploration
    agent       always the fastest, which an agent's command changes; if a client of the MCP server writes the kernels,
                nothing is selected (`campaign.plan`)
"""

import random

from kernel_scientist.population.entry import Entry, order
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.params import Strategy
from kernel_scientist.scientist.proposals import Lessons, Selection
from kernel_scientist.scientist.roles import Agent, Step

EPSILON, ROOT_CHILDREN, CHILDREN = 0.3, 5, 3
"""STARK, appendix A: probability of exploring; number of children after which a root is no longer selected; number of
failed children after which no node is."""
SWITCH_AFTER = 6
"""Hypotheses: experiments on a kernel without a gain, after which the next fastest one is designed on."""
MOST_NODES = 1000
"""Tree, hypotheses: the fastest kernels, among which one is selected."""
MIGRATION = 0.1
"""Islands: probability of taking an elite of another island."""


def select(strategy: Strategy, agent: Agent, population: Population, lessons: Lessons, step: Step) -> Selection:
    """Return base and reference kernel.

    With `scientist` the agent chooses both. Otherwise the reference is the base's parent, for a seed the fastest other
    kernel. Raises ValueError when no kernel has a score.
    """
    if strategy == "scientist":
        return agent.select(population, lessons, step)
    best = population.incumbent()
    if best is None:
        raise ValueError("no kernel in the population is correct: there is nothing to start from")
    match strategy:
        case "tree":
            base, why = _tree(population, step.rng)
        case "islands":
            base, why = _islands(population, step.rng)
        case "fsr":
            base, why = _best_of_last_generation(population) or best, "the best of the previous generation"
        case "hypotheses":
            base, why = _promising(population, best)
        case "best_of_n":
            seed = population.best_seed()
            base, why = seed.kernel.name if seed else best, "the best seed, always"
        case _:
            base, why = best, "the fastest kernel, always"
    others = [entry.name for entry in population.ranking(2) if entry.name != base]
    reference = population.entry(base).base or (others[0] if others else base)
    return Selection(base=base, reference=reference, rationale=why)


def _tree(population: Population, rng: random.Random) -> tuple[str, str]:
    """Select a random leaf with probability EPSILON, otherwise the best kernel. Exhausted nodes are not selected.

    STARK also selects failed leaves to debug them; here a kernel that fails is repaired before it is recorded.
    """
    ranking = population.ranking(MOST_NODES)
    candidates = [entry for entry in ranking if not _exhausted(population, entry)] or ranking
    leaves = [entry for entry in candidates if not population.children(entry.name)]
    if leaves and rng.random() < EPSILON:
        leaf = rng.choice(sorted(leaves, key=lambda entry: order(entry.name)))
        return leaf.name, "a random leaf"
    return candidates[0].name, "the best that may still have children"


def _islands(population: Population, rng: random.Random) -> tuple[str, str]:
    """Alternate among the descendants of each seed (an island); there take the elite of a random cell."""
    elites = population.elites()
    seeds = sorted(elites, key=order)
    island = seeds[len(population) % len(seeds)]
    if len(seeds) > 1 and rng.random() < MIGRATION:
        island = rng.choice([seed for seed in seeds if seed != island])
    chosen = population.entry(rng.choice(sorted(elites[island].values(), key=order)))
    return chosen.name, f"the elite of cell {'/'.join(chosen.cell)}"


def _promising(population: Population, best: str) -> tuple[str, str]:
    """Select the incumbent `best`; after SWITCH_AFTER experiments on it without a gain, the next fastest kernel."""
    for name in dict.fromkeys((best, *(entry.name for entry in population.ranking(MOST_NODES)))):
        tried = [entry for child in population.children(name) if (entry := population.entry(child)).is_experiment]
        if len(tried) < SWITCH_AFTER or any((entry.gain_low or 0.0) > 1 for entry in tried):
            return name, "the fastest kernel" if name == best else f"{best} is faster, but nothing gains on it"
    return best, "the fastest kernel"


def _exhausted(population: Population, entry: Entry) -> bool:
    children = population.children(entry.name)
    if entry.base is None and len(children) >= ROOT_CHILDREN:
        return True
    return len(children) > CHILDREN and not any(population.entry(child).score for child in children)


def _best_of_last_generation(population: Population) -> str | None:
    for number in reversed(range(population.generations())):
        if scored := [entry for entry in population.generation(number) if entry.score]:
            return max(scored, key=lambda entry: population.estimate(entry.name)).name
    return None
