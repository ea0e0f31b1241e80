"""The order of kernels by measured ratios, each by its interval."""

import math
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population.entry import LEAST_VARIANCE, Entry, Pair
from kernel_scientist.population.ranking import Ranking
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.records.kernel import REFERENCE
from tests.trials import speedup, trial

Others = Mapping[str, tuple[float, float]]
"""Binary logarithm of the ratio to each other source, and half-width of its interval."""


def entry(name: str, over: Others, rival: str) -> Entry:
    pairs = tuple(Pair(other, log, max(width**2, LEAST_VARIANCE)) for other, (log, width) in over.items())
    score = 2 ** over[REFERENCE][0]
    return Entry.of(trial(name, score))._replace(rival=rival, pairs=pairs)


def ranked(*entries: Entry) -> Ranking:
    ranking = Ranking()
    for one in entries:
        assert next(ranking.add(one)) == one.name
    return ranking


@st.composite
def campaigns(draw: st.DrawFn, exact: bool = False) -> tuple[list[Entry], dict[str, float]]:
    """Kernels that were timed beside earlier ones, and their true speeds; `exact`: every ratio is the true one."""
    speeds = dict[str, float]()
    entries = list[Entry]()
    for number in range(1, draw(st.integers(1, 12)) + 1):
        name, speed = f"k{number:05d}", draw(st.floats(-3, 3))
        beside = draw(st.lists(st.sampled_from(sorted(speeds)), min_size=1, max_size=2, unique=True)) if speeds else []
        over = dict[str, tuple[float, float]]()
        for other in (REFERENCE, *beside):
            error = 0.0 if exact else draw(st.floats(-1, 1))
            over[other] = speed - speeds.get(other, 0.0) + error, draw(st.floats(0, 2))
        entries.append(entry(name, over, beside[-1] if beside else REFERENCE))
        speeds[name] = speed
    return entries, speeds


@given(campaigns(), st.randoms(use_true_random=False))
def test_the_order_in_which_kernels_come_does_not_matter(
    campaign: tuple[list[Entry], dict[str, float]], random: Random
) -> None:
    entries, _ = campaign
    shuffled = random.sample(entries, len(entries))
    one, other = ranked(*entries), ranked(*shuffled)
    assert one.best() == other.best()
    assert [one.place(e) for e in entries] == [other.place(e) for e in entries]
    assert [one.estimate(e.name) for e in entries] == [one.place(e).log for e in entries]


@given(campaigns(exact=True))
def test_true_ratios_give_the_true_speeds_whatever_their_intervals(
    campaign: tuple[list[Entry], dict[str, float]],
) -> None:
    entries, speeds = campaign
    ranking = ranked(*entries)
    assert {name: ranking.estimate(name) for name in speeds} == pytest.approx(speeds, abs=1e-6)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(2, 10))
def test_a_wide_ratio_to_a_far_rival_does_not_move_a_precise_ratio_to_the_reference(
    own: float, wrong: float, width: float
) -> None:
    first = entry("k00001", {REFERENCE: (0.0, 0.01)}, REFERENCE)
    ranking = ranked(first, entry("k00002", {REFERENCE: (own, 0.01), "k00001": (wrong, width)}, "k00001"))
    assert ranking.estimate("k00002") == pytest.approx(own, abs=1e-3)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_reference_that_the_load_disturbs_does_not_move_a_precise_ratio_to_the_rival(gain: float, own: float) -> None:
    first = entry("k00001", {REFERENCE: (1.0, 2.0)}, REFERENCE)
    ranking = ranked(first, entry("k00002", {REFERENCE: (own, 2.0), "k00001": (gain, 0.01)}, "k00001"))
    assert ranking.estimate("k00002") == pytest.approx(1.0 + gain, abs=1e-3)


def test_ratios_of_one_width_count_alike_and_the_others_uncertainty_counts_too() -> None:
    first = entry("k00001", {REFERENCE: (0.0, 0.1)}, REFERENCE)
    second = entry("k00002", {REFERENCE: (1.0, 0.1), "k00001": (1.0, 0.1)}, "k00001")
    third = entry("k00003", {REFERENCE: (2.0, 0.1), "k00002": (0.4, 0.1)}, "k00002")
    ranking = ranked(first, second, third)
    place = ranking.place(second)
    assert place.variance == pytest.approx(1 / (1 / 0.01 + 1 / 0.02)) and place.of_reference == pytest.approx(0.01)
    by_rival, by_reference = 1 / (0.01 + place.variance), 1 / 0.02
    expected = (1.4 * by_rival + 2.0 * by_reference) / (by_rival + by_reference)
    assert ranking.estimate("k00003") == pytest.approx(expected)


def test_a_timing_that_was_broken_off_says_little_of_the_kernels_after_it() -> None:
    first = entry("k00001", {REFERENCE: (0.0, 0.1)}, REFERENCE)
    wide = math.sqrt(Pair.of(speedup("k00001", 0.5, 1.0, UNRESOLVED), "k00001").variance)
    dropped = entry("k00002", {REFERENCE: (3.0, wide), "k00001": (-1.0, wide)}, "k00001")
    child = entry("k00003", {REFERENCE: (1.0, 0.1), "k00001": (1.0, 0.1), "k00002": (2.0, 0.1)}, "k00001")
    ranking = ranked(first, dropped, child)
    assert ranking.estimate("k00002") == pytest.approx(1.0, abs=0.01), "both say as little"
    assert ranking.estimate("k00003") == pytest.approx(1.0, abs=0.01)


def test_a_pair_holds_what_the_interval_leaves_open() -> None:
    pair = Pair.of(speedup("k", 2.0, 1.0, (1.0, 4.0)), "k")
    assert (pair.log, pair.variance) == (1.0, 1.0)
    assert Pair.of(speedup("k", 2.0, 1.0, (2.0, 2.0)), "k").variance == LEAST_VARIANCE


def test_a_kernel_waits_for_all_that_it_was_timed_with() -> None:
    first = entry("k00001", {REFERENCE: (0.0, 0.1)}, REFERENCE)
    base = entry("k00002", {REFERENCE: (1.0, 0.1), "k00001": (0.0, 0.1)}, "k00001")
    last = entry("k00003", {REFERENCE: (5.0, 0.1), "k00001": (1.0, 0.1), "k00002": (1.0, 0.1)}, "k00001")
    ranking = ranked(last, first)
    assert ranking.estimate("k00003") == 5.0
    assert list(ranking.add(base)) == ["k00002", "k00003"]
    assert ranking.estimate("k00003") == ranking.place(last).log < 5.0
