"""Intervals: honest about equal kernels, unmoved by one wild block, and never made of impossible times."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.evaluate.timing.statistics import attainable, median_interval, ratio
from kernel_scientist.records.evaluation import UNRESOLVED

processes = st.integers(1, 4).flatmap(
    lambda n: st.integers(4, 6).flatmap(
        lambda b: st.lists(st.lists(st.floats(1.0, 1000.0), min_size=b, max_size=b), min_size=n, max_size=n)
    )
)


@given(processes, st.floats(0.1, 10))
def test_a_ratio_scales_and_lies_in_its_interval(values: list[list[float]], factor: float) -> None:
    middle, (low, high) = ratio([[v / factor for v in p] for p in values], values, 0.95)
    assert middle == pytest.approx(factor) and low == pytest.approx(factor) and high == pytest.approx(factor)


@given(processes, st.data())
def test_swapping_the_contestants_inverts_the_ratio(values: list[list[float]], data: st.DataObject) -> None:
    size = len(values[0])
    others = [data.draw(st.lists(st.floats(1.0, 1000.0), min_size=size, max_size=size)) for _ in values]
    middle, (low, high) = ratio(values, others, 0.95)
    back, (back_low, back_high) = ratio(others, values, 0.95)
    assert low <= middle <= high
    assert (back, back_low, back_high) == pytest.approx((1 / middle, 1 / high, 1 / low))


def test_too_few_blocks_resolve_nothing() -> None:
    assert ratio([[1.0, 1.0]], [[2.0, 2.0]], 0.95) == (pytest.approx(2.0), UNRESOLVED)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_time_is_no_time(value: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        ratio([[1.0, 1.0, 1.0, value]], [[1.0] * 4], 0.95)


def wrong_claims(look_sizes: list[int], spread: float, processes_differ: float, margin: float) -> float:
    """Share of A/A comparisons that some look calls faster."""
    rng = random.Random(1)
    claims = 0
    for _ in range(400):
        ours: list[list[float]] = []
        theirs: list[list[float]] = []
        for size in look_sizes:
            shift = rng.gauss(0, processes_differ)
            ours.append([math.exp(rng.gauss(shift, spread)) * (10 if rng.random() < 0.01 else 1) for _ in range(size)])
            theirs.append([math.exp(rng.gauss(0, spread)) * (10 if rng.random() < 0.01 else 1) for _ in range(size)])
            if ratio(ours, theirs, 1 - 0.05 / 3)[1][0] > 1 + margin:
                claims += 1
                break
    return claims / 400


def test_equal_kernels_are_seldom_called_faster_even_with_wild_blocks_and_three_looks() -> None:
    assert wrong_claims([4, 4, 4], spread=0.01, processes_differ=0.003, margin=0.01) <= 0.01


def test_noise_far_above_the_margin_is_not_called_faster_either() -> None:
    """Quantiles of a bootstrap over four blocks claimed 9 % here: all four lie on one side once in eight times."""
    assert wrong_claims([4, 4, 4], spread=0.05, processes_differ=0.0, margin=0.0) <= 0.02


def goes_on(gain: float, spread: float, tries: int = 200) -> float:
    """Share of kernels faster by `gain` that are looked at again after a first look of four blocks."""
    rng = random.Random(2)
    count = 0
    for _ in range(tries):
        ours, theirs = ([[math.exp(rng.gauss(-at, spread)) for _ in range(4)]] for at in (gain, 0.0))
        count += attainable(ours, theirs, 1 - 0.05 / 3, 0.005, (1, 3))
    return count / tries


def test_what_cannot_be_shown_any_more_is_not_looked_at_again() -> None:
    assert goes_on(0.0, 0.02) < 0.35
    assert goes_on(0.04, 0.01) > 0.95


@given(processes, st.floats(0.0, 0.05))
def test_what_is_faster_already_may_still_be(values: list[list[float]], margin: float) -> None:
    ours = [[v / 3 for v in p] for p in values]
    theirs = [list(reversed(p)) for p in values]
    if ratio(ours, theirs, 0.98)[1][0] > 1 + margin:
        assert attainable(ours, theirs, 0.98, margin, (len(values), 4 + len(values)))


def test_one_wild_block_does_not_hide_a_clear_gain() -> None:
    ours = [[1.0] * 4, [1.0] * 4]
    middle, (low, _) = ratio(ours, [[1.2, 1.21, 1.19, 1.2], [1.22, 1.18, 1.2, 0.1]], 0.95)
    assert middle == pytest.approx(1.2, rel=0.02) and low > 1.0


def test_processes_that_differ_widen_the_interval() -> None:
    """Blocks that agree within each process, but not across processes, are not many independent samples."""
    ours = [[1.0] * 6, [1.0] * 6, [1.0] * 6]
    same = ratio(ours, [[1.05, 1.06] * 3] * 3, 0.95)[1]
    apart = ratio(ours, [[1.0, 1.01] * 3, [1.05, 1.06] * 3, [1.1, 1.11] * 3], 0.95)[1]
    assert apart[1] - apart[0] > 3 * (same[1] - same[0])


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=40))
def test_a_median_lies_in_its_interval(values: list[float]) -> None:
    middle, (low, high) = median_interval(values, 0.95)
    assert min(values) <= low <= middle <= high <= max(values)
