"""Comparison of two ways of searching: paired test, curves, page."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.population.lineage import Population
from kernel_scientist.report import comparison
from kernel_scientist.report.comparison import CampaignCurve
from kernel_scientist.report.output import Table
from tests.trials import trial


def entries(finals: list[float], side: str, **settings: str) -> list[CampaignCurve]:
    return [
        CampaignCurve(
            name=f"{side}{n}", seed=str(n), curve=(1.0, final), settings={"search.strategy": side, **settings}
        )
        for n, final in enumerate(finals)
    ]


def test_a_real_difference_is_found_and_no_false_one() -> None:
    better, worse = [1.5, 1.6, 1.7, 1.8, 1.9], [1.4, 1.5, 1.6, 1.7, 1.8]
    result = comparison.compare(entries(better, "tree"), entries(worse, "greedy"))
    assert result["budget_kernels"] == 2 and "the first is better" in result["conclusion"]
    assert result["p_first_better"] == pytest.approx(1 / 32, abs=1e-4) and result["ratio"] > 1.05
    assert result["differ_in"] == {"search.strategy": ["tree", "greedy"]}
    same = comparison.compare(entries(better, "a"), entries(better[::-1], "b"))
    assert "no significant difference" in same["conclusion"] and same["ratio"] == 1.0


def test_too_few_repeats_give_no_conclusion() -> None:
    result = comparison.compare(entries([2.0], "a"), entries([1.0], "b"))
    assert result["p_first_better"] is None and "no conclusion" in result["conclusion"]


@given(st.lists(st.floats(0.5, 4), min_size=5, max_size=9), st.randoms(use_true_random=False))
def test_swapping_the_sides_swaps_the_test(finals: list[float], rng: object) -> None:
    others = [f * 1.1 for f in reversed(finals)]
    one, two = (
        comparison.compare(*pair)
        for pair in (
            (entries(finals, "a"), entries(others, "b")),
            (entries(others, "b"), entries(finals, "a")),
        )
    )
    assert one["p_first_better"] == two["p_second_better"]


def test_a_curve_rises_only_by_a_test() -> None:
    lucky = trial("k00003", 5.0, {"k00002": (0.5, 9.0)}, base="k00002")
    population = Population((trial("k00001", 1.0), trial("k00002", 2.0, {"k00001": (1.8, 2.2)}), lucky))
    assert population.incumbent_scores() == (1.0, 2.0, 2.0)


def test_the_page_of_a_comparison_shows_both_sides(tmp_path: Path) -> None:
    result = comparison.compare(entries([1.5, 1.7], "tree"), entries([1.2, 1.3], "greedy"))
    comparison.write_page(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1 and page.count("tree0, tree1") >= 2 and "<td>tree</td><td>greedy</td>" in page


def test_champions_stand_beside_the_best_published_time() -> None:
    known = {"published_us": {"m64": 66.0, "m128": 90.0}}
    first, second = (
        [e.model_copy(update={"times_us": times, **known, "by_model": True}) for e in entries([1.5], side)]
        for side, times in (("a", {"m64": 71.0, "m256": 3.0}), ("b", {"m64": 80.0}))
    )
    result = comparison.compare(first, second)
    assert result["published"] == [{"case": "m64", "a0": 71.0, "b0": 80.0, "best published": 66.0}]
    titles = [part.title for part in comparison.shown({**result, "by_model": True}) if isinstance(part, Table)]
    assert "champions, predicted us, beside the best published kernel" in titles
