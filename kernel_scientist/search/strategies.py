"""Which kernel next: strategies over a population. Each is a pure choice with an explicit source of chance, so that a
campaign that is resumed goes on as it would have: the state is the recorded kernels and nothing else.

    scientist   the mind selects (GPU Kernel Scientist, arXiv 2506.20807)
    tree        epsilon-greedy over the tree of kernels (STARK, arXiv 2510.16996, with its published parameters)
    islands     elites of cells of measured features, one island a seed, with migration (MAP-Elites)
    fsr         the best of the generation before (CUDA-LLM's N x D loop, arXiv 2506.09092)
    best_of_n   always the best seed: independent attempts, the control without search
    greedy      always the fastest: the control without judgement
"""

import random
from collections.abc import Sequence
from typing import Literal

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist.roles import Lessons, Mind, Selection, Turn

Strategy = Literal["scientist", "tree", "islands", "fsr", "best_of_n", "greedy"]
EPSILON, ROOT_CHILDREN, CHILDREN = 0.3, 5, 3
"""STARK, appendix A: how often it explores; children after which a root rests; failed ones after which any node."""
MIGRATION = 0.1
"""Islands: how often an elite of another island is taken."""


def select(strategy: Strategy, mind: Mind, population: Population, lessons: Lessons, turn: Turn) -> Selection:
    """Return base and reference kernel. Raises ValueError when no kernel is right."""
    if strategy == "scientist":
        return mind.select(population, lessons, turn)
    best = population.best()
    if best is None:
        raise ValueError("no kernel in the population is right: there is nothing to start from")
    match strategy:
        case "tree":
            return tree(population, turn.rng)
        case "islands":
            return islands(population, turn.rng)
        case "fsr":
            return _selection(population, _of_last_generation(population, best), "the best of the generation before")
        case "best_of_n":
            return _selection(population, population.best_seed() or best, "the best seed, always")
        case _:
            return _selection(population, best, "the fastest kernel, always")


def tree(population: Population, rng: random.Random) -> Selection:
    """Explore a leaf with chance EPSILON, else take the best; worn-out roots and dead branches are left alone.

    STARK also picks failed leaves, to debug them; here a kernel that fails is mended before it is recorded.
    """
    right = [t for t in population.ranked() if not _worn_out(population, t)] or population.ranked()
    leaves = [t for t in right if not population.children(t.kernel.name)]
    if leaves and rng.random() < EPSILON:
        return _selection(population, rng.choice(sorted(leaves, key=_name)), "a leaf, drawn by lot")
    return _selection(population, right[0], "the best that may still have children")


def islands(population: Population, rng: random.Random) -> Selection:
    """Take turns among the seeds' lines; within a line draw a cell by lot and take its elite."""
    lines: dict[str, list[Trial]] = {}
    for trial in population.ranked():
        lines.setdefault(_root(population, trial), []).append(trial)
    names = sorted(lines)
    island = lines[names[len(population) % len(names)]]
    if len(names) > 1 and rng.random() < MIGRATION:
        island = lines[rng.choice([n for n in names if lines[n] is not island])]
    elites: dict[tuple[str, ...], Trial] = {}
    for trial in island:  # fastest first
        elites.setdefault(cell(trial), trial)
    chosen = rng.choice(sorted(elites.values(), key=_name))
    return _selection(population, chosen, f"the elite of cell {'/'.join(cell(chosen))}")


def cell(trial: Trial) -> tuple[str, ...]:
    """Return a kernel's cell, from what its compiled code is: widest vector, dot products, size to a power of two."""
    report = trial.evaluation.compile
    counts = report.instructions if report else {}
    widest = next((kind for kind in ("zmm", "ymm", "xmm") if counts.get(kind)), "scalar")
    size = (report.code_bytes or 0).bit_length() if report else 0
    return widest, "dot" if counts.get("dot") else "fma" if counts.get("fma") else "plain", f"2^{size} bytes"


def _worn_out(population: Population, trial: Trial) -> bool:
    children = population.children(trial.kernel.name)
    if trial.kernel.base is None and len(children) >= ROOT_CHILDREN:
        return True
    return len(children) > CHILDREN and all(score(c) == 0 for c in children)


def _of_last_generation(population: Population, best: Trial) -> Trial:
    generations: Sequence[int] = sorted({t.kernel.generation for t in population.ranked()}, reverse=True)
    last = generations[0]
    return next((t for t in population.ranked() if t.kernel.generation == last), best)


def _root(population: Population, trial: Trial) -> str:
    while trial.kernel.base is not None:
        trial = population.get(trial.kernel.base)
    return trial.kernel.name


def _selection(population: Population, base: Trial, why: str) -> Selection:
    """Contrast a base with its parent; a seed with the fastest of the others."""
    others = [t for t in population.ranked() if t is not base]
    reference = base.kernel.base or (others[0] if others else base).kernel.name
    return Selection(base=base.kernel.name, reference=reference, rationale=why)


def _name(trial: Trial) -> str:
    return trial.kernel.name
