"""Strategies that select the next base kernel. Each is a pure function of the population and a random generator, so a
resumed campaign continues as it would have: the recorded kernels are the only state.

    scientist   an agent selects (GPU Kernel Scientist, arXiv 2506.20807)
    tree        epsilon-greedy over the tree of kernels (STARK, arXiv 2510.16996, with its published parameters)
    islands     elites of cells of measured features, one island a seed, with migration (MAP-Elites)
    fsr         the best of the previous generation (CUDA-LLM's N x D loop, arXiv 2506.09092)
    best_of_n   always the best seed: independent attempts, the control without search
    greedy      always the fastest: the control without exploration
"""

import random

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import Strategy
from kernel_scientist.scientist.lessons import Lessons
from kernel_scientist.scientist.proposals import Selection
from kernel_scientist.scientist.roles import Agent, Step

EPSILON, ROOT_CHILDREN, CHILDREN = 0.3, 5, 3
"""STARK, appendix A: probability of exploring; number of children after which a root is no longer selected; number of
failed children after which no node is."""
MIGRATION = 0.1
"""Islands: probability of taking an elite of another island."""


def select(strategy: Strategy, agent: Agent, population: Population, lessons: Lessons, step: Step) -> Selection:
    """Return base and reference kernel. Raises ValueError when no kernel has a score."""
    if strategy == "scientist":
        return agent.select(population, lessons, step)
    best = population.best()
    if best is None:
        raise ValueError("no kernel in the population is correct: there is nothing to start from")
    match strategy:
        case "tree":
            return tree(population, step.rng)
        case "islands":
            return islands(population, step.rng)
        case "fsr":
            return _selection(population, _of_last_generation(population, best), "the best of the previous generation")
        case "best_of_n":
            return _selection(population, population.best_seed() or best, "the best seed, always")
        case _:
            return _selection(population, best, "the fastest kernel, always")


def tree(population: Population, rng: random.Random) -> Selection:
    """Select a random leaf with probability EPSILON, otherwise the best kernel. Exhausted nodes are not selected.

    STARK also selects failed leaves to debug them; here a kernel that fails is repaired before it is recorded.
    """
    candidates = [t for t in population.ranked() if not _exhausted(population, t)] or population.ranked()
    leaves = [t for t in candidates if not population.children(t.kernel.name)]
    if leaves and rng.random() < EPSILON:
        return _selection(population, rng.choice(sorted(leaves, key=_name)), "a random leaf")
    return _selection(population, candidates[0], "the best that may still have children")


def islands(population: Population, rng: random.Random) -> Selection:
    """Alternate among the descendants of each seed (an island); there take the elite of a random cell."""
    by_seed: dict[str, list[Trial]] = {}
    for trial in population.ranked():
        by_seed.setdefault(_root(population, trial), []).append(trial)
    names = sorted(by_seed)
    island = by_seed[names[len(population) % len(names)]]
    if len(names) > 1 and rng.random() < MIGRATION:
        island = by_seed[rng.choice([n for n in names if by_seed[n] is not island])]
    elites: dict[tuple[str, ...], Trial] = {}
    for trial in island:  # fastest first
        elites.setdefault(cell(trial), trial)
    chosen = rng.choice(sorted(elites.values(), key=_name))
    return _selection(population, chosen, f"the elite of cell {'/'.join(cell(chosen))}")


def cell(trial: Trial) -> tuple[str, ...]:
    """Return a kernel's cell, computed from its code: widest vectors, kind of arithmetic, size as a power of two."""
    report = trial.evaluation.compile
    counts = report.instructions if report else {}
    widest = next((kind for kind in ("zmm", "ymm", "xmm") if counts.get(kind)), "scalar")
    size = (report.code_bytes or 0).bit_length() if report else 0
    return widest, "dot" if counts.get("dot") else "fma" if counts.get("fma") else "plain", f"2^{size} bytes"


def _exhausted(population: Population, trial: Trial) -> bool:
    children = population.children(trial.kernel.name)
    if trial.kernel.base is None and len(children) >= ROOT_CHILDREN:
        return True
    return len(children) > CHILDREN and all(score(c) == 0 for c in children)


def _of_last_generation(population: Population, best: Trial) -> Trial:
    last = max(t.kernel.generation for t in population.ranked())
    return next((t for t in population.ranked() if t.kernel.generation == last), best)


def _root(population: Population, trial: Trial) -> str:
    while trial.kernel.base is not None:
        trial = population.get(trial.kernel.base)
    return trial.kernel.name


def _selection(population: Population, base: Trial, why: str) -> Selection:
    """Select the base's parent as the reference kernel; for a seed, the fastest of the others."""
    others = [t for t in population.ranked() if t is not base]
    reference = base.kernel.base or (others[0] if others else base).kernel.name
    return Selection(base=base.kernel.name, reference=reference, rationale=why)


def _name(trial: Trial) -> str:
    return trial.kernel.name
