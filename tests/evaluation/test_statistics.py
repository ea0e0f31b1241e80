"""Estimates: honest about equal kernels, unmoved by one wild block, never made of impossible times."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.evaluation.timing.statistics import Blocks, attainable, ratio, time
from kernel_scientist.records import factors
from kernel_scientist.records.factors import UNRESOLVED

TIMES = st.floats(1.0, 1000.0)
processes = st.integers(1, 4).flatmap(
    lambda n: st.integers(4, 6).flatmap(
        lambda b: st.lists(st.lists(TIMES, min_size=b, max_size=b), min_size=n, max_size=n)
    )
)


def interval(times: Blocks, against: Blocks, confidence: float = 0.95) -> tuple[float, float]:
    return ratio([times], [against]).interval(confidence)


@given(processes, st.floats(0.1, 10))
def test_a_constant_factor_is_found_exactly(values: list[list[float]], factor: float) -> None:
    estimate = ratio([[[v / factor for v in p] for p in values]], [values])
    assert (math.exp(estimate.log), *estimate.interval(0.95)) == pytest.approx((factor,) * 3)


@given(st.lists(processes, min_size=2, max_size=2))
def test_swapping_the_sources_inverts_the_ratio(tables: list[list[list[float]]]) -> None:
    size, count = min(len(t[0]) for t in tables), min(len(t) for t in tables)
    ours, theirs = ([p[:size] for p in t[:count]] for t in tables)
    there, back = ratio([ours], [theirs]), ratio([theirs], [ours])
    assert back.log == pytest.approx(-there.log)
    (low, high), (back_low, back_high) = there.interval(0.95), back.interval(0.95)
    assert low <= math.exp(there.log) <= high
    assert (back_low, back_high) == pytest.approx((1 / high, 1 / low))


@given(st.lists(processes, min_size=2, max_size=6))
def test_a_ratio_is_the_geometric_mean_of_the_quotients_of_the_times(tables: list[list[list[float]]]) -> None:
    size, count = min(len(t[0]) for t in tables), min(len(t) for t in tables)
    tables = [[p[:size] for p in t[:count]] for t in tables[: len(tables) // 2 * 2]]
    ours, theirs = tables[::2], tables[1::2]
    quotients = [time(b).log - time(a).log for a, b in zip(ours, theirs, strict=True)]
    assert ratio(ours, theirs).log == pytest.approx(sum(quotients) / len(quotients), abs=1e-9)


def test_too_few_blocks_resolve_nothing() -> None:
    estimate = ratio([[[1.0, 1.0]]], [[[2.0, 2.0]]])
    assert math.exp(estimate.log) == pytest.approx(2.0) and estimate.interval(0.95) == UNRESOLVED


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_time_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        ratio([[[1.0, 1.0, 1.0, value]]], [[[1.0] * 4]])


def wrong_claims(stage_sizes: list[int], spread: float, processes_differ: float, margin: float) -> float:
    """Share of A/A comparisons that some stage calls faster."""
    rng, claims = random.Random(1), 0
    for _ in range(400):
        ours: list[list[float]] = []
        theirs: list[list[float]] = []
        for size in stage_sizes:
            shift = rng.gauss(0, processes_differ)
            ours.append([math.exp(rng.gauss(shift, spread)) * (10 if rng.random() < 0.01 else 1) for _ in range(size)])
            theirs.append([math.exp(rng.gauss(0, spread)) * (10 if rng.random() < 0.01 else 1) for _ in range(size)])
            if interval(ours, theirs, 1 - 0.05 / 3)[0] > 1 + margin:
                claims += 1
                break
    return claims / 400


def test_equal_kernels_are_seldom_called_faster_even_with_wild_blocks_and_three_stages() -> None:
    assert wrong_claims([4, 4, 4], spread=0.01, processes_differ=0.003, margin=0.01) <= 0.01


def test_noise_far_above_the_margin_is_not_called_faster_either() -> None:
    """Quantiles of a bootstrap over four blocks claimed 9 % here: all four lie on one side once in eight times."""
    assert wrong_claims([4, 4, 4], spread=0.05, processes_differ=0.0, margin=0.0) <= 0.02


def goes_on(gain: float, spread: float, tries: int = 200) -> float:
    """Share of kernels faster by `gain` that are timed on after a first stage of four blocks."""
    rng, count = random.Random(2), 0
    for _ in range(tries):
        ours, theirs = ([[math.exp(rng.gauss(-at, spread)) for _ in range(4)]] for at in (gain, 0.0))
        count += attainable(ratio([ours], [theirs]), 1 - 0.05 / 3, 0.005, (1, 3))
    return count / tries


def test_timing_ends_when_a_gain_cannot_be_shown_any_more() -> None:
    assert goes_on(0.0, 0.02) < 0.4
    assert goes_on(0.04, 0.01) > 0.95


def test_one_wild_block_does_not_hide_a_clear_gain() -> None:
    ours = [[1.0] * 4, [1.0] * 4]
    theirs = [[1.2, 1.21, 1.19, 1.2], [1.22, 1.18, 1.2, 0.1]]
    assert math.exp(ratio([ours], [theirs]).log) == pytest.approx(1.2, rel=0.02) and interval(ours, theirs)[0] > 1.0


def test_processes_that_differ_widen_the_interval() -> None:
    """Blocks that agree within each process, but not across processes, are not many independent samples."""
    ours = [[1.0] * 6, [1.0] * 6, [1.0] * 6]
    same = interval(ours, [[1.05, 1.06] * 3] * 3)
    apart = interval(ours, [[1.0, 1.01] * 3, [1.05, 1.06] * 3, [1.1, 1.11] * 3])
    assert apart[1] - apart[0] > 3 * (same[1] - same[0])


@pytest.mark.parametrize(("count", "least"), [(2, 0.82), (3, 0.88)])
@pytest.mark.parametrize("processes_differ", [0.0, 0.3, 1.0, 3.0])
def test_an_interval_contains_the_truth_also_where_processes_differ_more_than_blocks(
    count: int, least: float, processes_differ: float
) -> None:
    """A bootstrap that drew processes, with the freedom of the blocks, contained it in 70 % (two) and 84 % (three)."""
    rng, hits, runs = random.Random(3), 0, 300

    def processes_of() -> list[list[float]]:
        shifts = [rng.gauss(0, processes_differ) for _ in range(count)]
        return [[math.exp(0.01 * rng.gauss(shift, 1.0)) for _ in range(6)] for shift in shifts]

    for _ in range(runs):
        low, high = interval(processes_of(), processes_of())
        hits += low <= 1 <= high
    assert hits / runs >= least


@given(processes, st.floats(0, 0.5))
def test_a_margin_widens_an_interval_by_its_factor_at_either_end(values: list[list[float]], margin: float) -> None:
    estimate = ratio([values], [[[1.0] * len(p) for p in values]])
    (low, high), (lower, higher) = estimate.interval(0.95), estimate.interval(0.95, margin)
    assert (low / lower, higher / high) == pytest.approx((1 + margin, 1 + margin))


def test_an_interval_that_says_nothing_is_told_all_the_same() -> None:
    """Fewer blocks than an interval needs is another reason, and not the true one."""
    found = ratio([[[1.0] * 4, [1.0] * 4]], [[[1.0] * 4, [3.2] * 4]]).interval(1 - 0.05 / 3)
    assert factors.is_known(found) and found[0] < 1e-3 and found[1] > 1e3
