"""Comparison of two ways of searching: paired test, curves, page."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.campaign.comparing import CampaignCurve, compare
from kernel_scientist.population import curves
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.comparison_result import BesidePublished
from kernel_scientist.records.evaluation import Speedup
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.report import comparison
from kernel_scientist.report.output import Table
from tests.trials import speedup, trial


def entries(finals: list[float], side: str, **settings: str) -> list[CampaignCurve]:
    return [
        CampaignCurve(
            name=f"{side}{n}",
            seed=str(n),
            curve=(1.0, final),
            bounds=((0.9, 1.1), (0.9 * final, 1.1 * final)),
            incumbents=("k00001", "k00002"),
            settings={"search.strategy": side, **settings},
        )
        for n, final in enumerate(finals)
    ]


def timed(first: list[float], second: list[float]) -> list[Speedup | None]:
    """What timing the incumbents of each pair in one run gives, if their speeds are these."""
    return [speedup("second", a / b, 1 / a, (0.95 * a / b, 1.05 * a / b)) for a, b in zip(first, second, strict=True)]


def test_a_real_difference_is_found_and_no_false_one() -> None:
    better, worse = [1.5, 1.6, 1.7, 1.8, 1.9], [1.4, 1.5, 1.6, 1.7, 1.8]
    result = compare(entries(better, "tree"), entries(worse, "greedy"), timed(better, worse))
    assert result.budget_kernels == 2 and "the first is better" in result.conclusion
    assert result.p_first_better == pytest.approx(1 / 32, abs=1e-4) and result.ratio > 1.05
    assert result.interval[0] < result.ratio < result.interval[1]
    assert result.differ_in == {"search.strategy": ("tree", "greedy")}
    for pair in result.pairs:
        assert pair.ratio == pytest.approx(pair.second_us / pair.first_us) and len(pair.interval) == 2
    same = compare(entries(better, "a"), entries(better, "b"), timed(better, better[::-1]))
    assert "no significant difference" in same.conclusion and same.ratio == pytest.approx(1.0)


def test_at_their_ends_campaigns_are_compared_by_what_each_had_found() -> None:
    long, short = ([e.model_copy(update={"by_model": True, "bounds": ()}) for e in entries([2.0], s)] for s in "ab")
    more = {"curve": (1.0, 2.0, 4.0), "incumbents": ("k00001", "k00002", "k00003")}
    long = [one.model_copy(update=more) for one in long]
    assert compare(long, short).ratio == 1.0 and compare(long, short).sides[0].best == 2.0
    result = compare(long, short, at_end=True)
    assert result.ratio == 2.0 and result.sides[0].best == 4.0 and result.budget_kernels == 2
    assert [pair.first.kernel for pair in result.pairs] == ["k00003"] and result.pairs[0].second.kernel == "k00002"
    titles = [part.title for part in comparison.shown(result) if isinstance(part, Table)]
    assert "incumbents at each campaign's end" in titles


def test_too_few_repeats_give_no_conclusion() -> None:
    result = compare(entries([2.0], "a"), entries([1.0], "b"), timed([2.0], [1.0]))
    assert result.p_first_better is None and "no conclusion" in result.conclusion and result.ratio == 2.0


def test_speeds_of_different_runs_give_no_quotient() -> None:
    result = compare(entries([2.0] * 5, "a"), entries([1.0] * 5, "b"), (), "there is no device here")
    assert result.ratio is None and result.p_first_better is None and "no quotient" in result.conclusion
    printed = [part for part in comparison.shown(result) if isinstance(part, str)]
    assert any("first / second" in line and "there is no device here" in line for line in printed)


@given(st.lists(st.floats(0.5, 4), min_size=5, max_size=9), st.randoms(use_true_random=False))
def test_swapping_the_sides_swaps_the_test(finals: list[float], rng: object) -> None:
    others = [f * 1.1 for f in reversed(finals)]
    one, two = (compare(entries(a, "a"), entries(b, "b"), timed(a, b)) for a, b in ((finals, others), (others, finals)))
    assert one.p_first_better == two.p_second_better


def test_a_curve_rises_only_by_a_test() -> None:
    lucky = trial("k00003", 5.0, {"k00002": (0.5, 9.0)}, base="k00002")
    population = Population((trial("k00001", 1.0), trial("k00002", 2.0, {"k00001": (1.8, 2.2)}), lucky))
    assert population.incumbents() == ("k00001", "k00002", "k00002")
    assert [point.ratio for point in curves.of(population)] == [1.0, 2.0, 2.0]


def test_a_new_incumbent_whose_speed_is_not_resolved_leaves_the_curve_where_it_was() -> None:
    wide = speedup(REFERENCE, 10.08, 10.0, (0.2, 496.0))
    won = trial("k00002", 10.08, {"k00001": (1.8, 2.2)})
    own = won.evaluation.model_copy(update={"speedups": (wide, won.evaluation.speedups[1])})
    population = Population((trial("k00001", 1.0), won.model_copy(update={"evaluation": own})))
    assert population.incumbents() == ("k00001", "k00002")
    assert [point.ratio for point in curves.of(population)] == [1.0, 1.0]


def test_the_page_of_a_comparison_shows_both_sides(tmp_path: Path) -> None:
    result = compare(entries([1.5, 1.7], "tree"), entries([1.2, 1.3], "greedy"))
    comparison.write_page(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1 and page.count("tree0, tree1") >= 2 and "<td>tree</td><td>greedy</td>" in page


def test_champions_stand_beside_the_best_published_time() -> None:
    known = {"published_us": {"m64": 66.0, "m128": 90.0}}
    first, second = (
        [e.model_copy(update={"times_us": times, **known, "by_model": True}) for e in entries([1.5], side)]
        for side, times in (("a", {"m64": 71.0, "m256": 3.0}), ("b", {"m64": 80.0}))
    )
    result = compare(first, second)
    assert result.published == (BesidePublished(case="m64", ours_us={"a0": 71.0, "b0": 80.0}, best_us=66.0),)
    titles = [part.title for part in comparison.shown(result) if isinstance(part, Table)]
    assert "champions, predicted us, beside the best published kernel" in titles
