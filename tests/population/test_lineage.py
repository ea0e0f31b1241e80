"""Queries over a campaign's kernels."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.campaign.ledger import Job, Ledger
from kernel_scientist.population.entry import Pair, beats, over_base, score
from kernel_scientist.population.lineage import Population, distinct_name
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE
from tests.trials import trial

CHAIN = [
    trial("k00001", 1.0),
    trial("k00002", 2.0, {"k00001": (1.8, 2.2)}),
    trial("k00003", 2.6, {"k00002": (0.9, 1.7)}, base="k00002"),  # higher ratio, but the test did not find it faster
    trial("k00004", 2.4, {"k00002": (1.1, 1.3)}, base="k00002"),
    trial("k00005", None, base="k00004"),
]

OWN = Pair.of(CHAIN[0].evaluation.speedups[0], REFERENCE).variance
"""Variance of each ratio to the reference in `trial`."""


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))))
def test_the_incumbent_is_the_winner_of_the_tests_in_any_order_of_logging(order: tuple[int, ...]) -> None:
    population = Population()
    for index in order:
        population.add(CHAIN[index])
    best = population.best()
    assert best is not None and best.kernel.name == "k00004"
    assert [t.kernel.name for t in population.ranked()] == ["k00003", "k00004", "k00002", "k00001"]
    assert population.estimate("k00003") == pytest.approx(math.log2(2.0 * 1.3))  # both its ratios say so
    assert population.expected(CHAIN[2]) == population.estimate("k00003")
    assert [t.kernel.name for t in population] == sorted(t.kernel.name for t in CHAIN)


def test_an_interval_that_includes_one_keeps_the_incumbent() -> None:
    noisy = trial("k00004", 2.4, {"k00002": (0.95, 1.45)}, base="k00002")
    best = Population((*CHAIN[:3], noisy)).best()
    assert best is not None and best.kernel.name == "k00002"


def test_lineage_gains_and_scores() -> None:
    population = Population(tuple(CHAIN))
    assert population.children("k00002") == ["k00003", "k00004"]
    pair = over_base(CHAIN[3])
    assert pair is not None and pair.ratio == pytest.approx(1.2) and pair.interval == (1.1, 1.3)
    assert over_base(CHAIN[4]) is None and over_base(CHAIN[0]) is None
    assert population.entry("k00004").gain == pytest.approx(1.2) and population.entry("k00003").gain is None
    assert score(CHAIN[4]) == 0 and population.verdicts()["incorrect"] == 1 and population.verdicts()["ok"] == 4
    seed = population.best_seed()
    assert seed is not None and seed.kernel.name == "k00002"
    with pytest.raises(ValueError, match="already"):
        population.add(CHAIN[0])


def test_a_kernel_that_beat_its_base_but_not_the_incumbent_does_not_replace_it() -> None:
    over = {"k00002": (1.2, 1.4), "k00004": (0.9, 1.05)}  # the base first, then the incumbent of its time
    late = trial("k00003", 2.5, over, base="k00002")
    for order in itertools.permutations((*CHAIN[:2], CHAIN[3], late)):
        population = Population(order)
        assert population.incumbent() == "k00004"
        pair = over_base(late)
        assert pair is not None and pair.against == "k00002" and pair.ratio == pytest.approx(1.3)


def test_an_empty_population_has_no_best() -> None:
    assert Population().best() is None and Population().best_seed() is None and Population().generations() == 0
    assert Population((CHAIN[4],)).best() is None


def _plainly(trials: Sequence[Trial]) -> str | None:
    """The incumbent, found by following the tests from the kernel that was timed first."""
    scored = sorted((t for t in trials if score(t) > 0), key=lambda t: t.kernel.name)
    current = next((t for t in scored if len(t.evaluation.speedups) == 1), None)
    visited: set[str] = set()
    while current is not None and current.kernel.name not in visited:
        visited.add(current.kernel.name)
        name = current.kernel.name
        current = next((t for t in scored if _rival(t) == name and beats(t, name)), current)
    return current.kernel.name if current else None


def _rival(trial: Trial) -> str:
    """What the test compared a kernel with; the comparison with its base, before it, decides nothing."""
    return trial.evaluation.speedups[-1].against


def _estimate(trials: dict[str, Trial], name: str) -> tuple[float, float]:
    """The place of a kernel and its variance, in the plain way: the mean of what each of its ratios says."""
    trial = trials[name]
    rival = _rival(trial)
    if rival == REFERENCE:
        return math.log2(trial.evaluation.speedups[-1].ratio), 0.0
    found = [
        (Pair.of(over, other), _estimate(trials, other) if other != REFERENCE else (0.0, OWN))
        for other in {REFERENCE, rival, trial.kernel.base or rival}
        if (over := trial.evaluation.speedup_over(other))
    ]
    weights = [1 / (pair.variance + variance) for pair, (_, variance) in found]
    total = sum(w * (pair.log + log) for w, (pair, (log, _)) in zip(weights, found, strict=True))
    return total / sum(weights), 1 / sum(weights)


@given(st.data(), st.integers(1, 30))
def test_the_index_agrees_with_a_plain_search(data: st.DataObject, count: int) -> None:
    trials: list[Trial] = []
    for number in range(1, count + 1):
        ratio = data.draw(st.one_of(st.none(), st.floats(0.1, 9)))
        known = [int(t.kernel.name[1:]) for t in trials if score(t)]  # only what was timed is an incumbent
        rivals = data.draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
        over = {f"k{rival:05d}": data.draw(st.sampled_from([(0.5, 0.9), (1.1, 1.3)])) for rival in rivals}
        base = f"k{data.draw(st.integers(1, number - 1)):05d}" if number > 1 else None
        trials.append(trial(f"k{number:05d}", ratio, over, base=base))
    population = Population()
    for one in data.draw(st.permutations(trials)):
        population.add(one)
    scored = [t for t in trials if score(t) > 0]
    best = population.best()
    assert (best.kernel.name if best else None) == _plainly(trials)
    by_name = {t.kernel.name: t for t in scored}
    estimates = {name: _estimate(by_name, name)[0] for name in by_name}
    assert {name: population.estimate(name) for name in by_name} == pytest.approx(estimates)
    places = {t.kernel.name: place for place, t in enumerate(population.ranked())}
    for one, other in itertools.combinations(by_name, 2):
        if estimates[one] > estimates[other] + 1e-9:
            assert places[one] < places[other]
    assert population.ranked(3) == population.ranked()[:3] and population.latest(4) == trials[-4:]
    assert list(population) == trials and len(population) == count
    seeds = [t for t in population.ranked() if t.kernel.base is None]
    assert population.best_seed() == (seeds[0] if seeds else None)
    prefixes = [Population(trials[:n]).incumbent() for n in range(1, count + 1)]
    assert population.incumbents() == tuple(prefixes)
    for one in trials:
        assert population.get(one.kernel.name) == one and population.has_source(one.kernel.digest)
        children = [t.kernel.name for t in trials if t.kernel.base == one.kernel.name]
        assert population.children(one.kernel.name) == children


def test_names_beyond_five_digits_keep_their_order() -> None:
    population = Population((trial("k100000", 2.0), trial("k99999", 2.0)))
    assert [t.kernel.name for t in population] == [e.name for e in population.ranking()] == ["k99999", "k100000"]


@given(st.sets(st.integers(1, 60), max_size=40), st.integers(1, 30))
def test_new_names_fill_gaps_first(taken: set[int], count: int) -> None:
    used = {f"k{n:05d}" for n in taken}
    ledger = Ledger(Population(trial(name, 2.0) for name in used))
    new = [ledger.open(Job(generation=1)).name for _ in range(count)]
    assert len(set(new)) == count and not used & set(new)
    assert ledger.tried == len(used) + count
    together = sorted(used | set(new))
    gap_free = [f"k{n:05d}" for n in range(1, count + 1)]
    assert new == sorted(new) and (set(together) >= set(gap_free))
    random.Random(0).shuffle(new)


@given(st.lists(st.sampled_from(["k", REFERENCE, "k (against)"]), min_size=1, max_size=6))
def test_names_of_files_are_made_different(stems: list[str]) -> None:
    taken = [REFERENCE]
    for stem in stems:
        taken.append(distinct_name(stem, taken, "against"))
        assert taken[-1].startswith(stem)
    assert len(set(taken)) == len(taken)
