"""Strategies: each selects a correct kernel by its rule, and the same one again for the same seed."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import CompileReport, Trial
from kernel_scientist.records.params import Strategy
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.scientist.roles import Step
from kernel_scientist.search import strategies
from tests.trials import trial

ROOT, SLOW = trial("k00001", 1.0), trial("k00002", 0.5)
STRATEGIES = [s for s in get_args(Strategy) if s != "scientist"]


def compiled(one: Trial, generation: int = 0, **counts: int) -> Trial:
    report = CompileReport(ok=True, compiler="g++", code_bytes=1000, instructions=counts)
    evaluation = one.evaluation.model_copy(update={"compile": report})
    return Trial(kernel=one.kernel.model_copy(update={"generation": generation}), evaluation=evaluation)


def chosen(strategy: str, population: Population, seed: int = 0) -> str:
    agent: object = None  # no strategy but `scientist` asks it
    return strategies.select(strategy, agent, population, Lessons(), Step.of(seed, "test", 1)).base  # type: ignore[arg-type]


@st.composite
def populations(draw: st.DrawFn) -> Population:
    trials = [ROOT]
    for number in range(2, draw(st.integers(2, 14))):
        ratio = draw(st.one_of(st.none(), st.floats(0.1, 9)))
        base = draw(st.sampled_from([t.kernel.name for t in trials if score(t)] + [None]))
        trials.append(trial(f"k{number:05d}", ratio, base=base))
    return Population(tuple(trials))


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(populations(), st.integers(0, 99))
def test_every_selected_kernel_is_correct_and_reproducible(strategy: str, population: Population, seed: int) -> None:
    name = chosen(strategy, population, seed)
    assert score(population.get(name)) > 0 and chosen(strategy, population, seed) == name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_a_correct_kernel_there_is_nothing_to_select(strategy: str) -> None:
    with pytest.raises(ValueError, match="nothing to start from"):
        chosen(strategy, Population((trial("k00001", None),)))


def test_the_tree_explores_as_often_as_published() -> None:
    trials = [
        ROOT,
        *(trial(f"k{n:05d}", 2.0 + n, base="k00001") for n in range(2, 6)),
        trial("k00006", 1.5, base="k00005"),
    ]
    picks = Counter(chosen("tree", Population(tuple(trials)), seed) for seed in range(2000))
    best = picks.pop("k00005")  # it has a child, so it is not a leaf and is never drawn at random
    assert abs(best / 2000 - (1 - strategies.EPSILON)) < 0.04
    assert set(picks) == {"k00002", "k00003", "k00004", "k00006"} and min(picks.values()) > 100


def test_exhausted_nodes_are_not_selected() -> None:
    root = [trial("k00001", 9.0), *(trial(f"k{n:05d}", 1.0, base="k00001") for n in range(2, 7))]
    assert "k00001" not in {chosen("tree", Population(tuple(root)), seed) for seed in range(200)}
    dead = [ROOT, trial("k00002", 9.0, base="k00001"), *(trial(f"k{n:05d}", None, base="k00002") for n in range(3, 7))]
    assert {chosen("tree", Population(tuple(dead)), seed) for seed in range(200)} == {"k00001"}


def test_islands_keep_different_elites() -> None:
    trials = [
        compiled(trial("k00001", 1.0), xmm=5),
        compiled(trial("k00003", 9.0, base="k00001"), zmm=5),
        compiled(trial("k00004", 5.0, base="k00001"), zmm=4),  # the same cell as k00003, slower
        compiled(trial("k00005", 2.0, base="k00001"), ymm=5),
    ]
    assert {chosen("islands", Population(tuple(trials)), seed) for seed in range(100)} == {"k00001", "k00003", "k00005"}
    two = Population((*trials, compiled(SLOW, xmm=1)))
    assert "k00002" in {chosen("islands", two, seed) for seed in range(100)}


def test_controls_do_what_their_names_say() -> None:
    trials = (ROOT, SLOW, compiled(trial("k00003", 3.0, {"k00001": (2.5, 3.5)}, base="k00001"), 1))
    last = compiled(trial("k00004", 2.0, base="k00003"), 2)
    population = Population((*trials, last))
    assert chosen("greedy", population) == "k00003"
    assert chosen("best_of_n", population) == "k00001"
    assert chosen("fsr", population) == "k00004"
