"""Comparison of two ways of searching at equal budget: best-so-far curves with bands over repeats, and a paired test.

A side is one campaign or several repeats with different `search.seed`. The budget is the number of kernels that every
campaign of both sides has tried. Repeats with equal seeds are pairs. The test is a sign-flip test over the pairs: its
only assumption is that neither side is better. Fewer than five pairs cannot reach 5 %.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from scipy import stats

from kernel_scientist.problems import published
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.report.output import Table, html, parts, ratio, write
from kernel_scientist.report.pages import plots
from kernel_scientist.report.summaries import rounded
from kernel_scientist.tracking.access import read_campaign

QUANTILES = {"low": 0.1, "median": 0.5, "high": 0.9}
"""Quantiles of a side's curves."""
RESAMPLES = 2**16
"""Up to this number all sign flips are enumerated; beyond it they are sampled."""
LEAST_PAIRS = 5
"""Pairs from which a one-sided p of 0.05 can be reached: 1/2^5."""
SIDES = ("first", "second")


class CampaignCurve(Record):
    """A campaign's incumbent speed after each kernel, and its cost."""

    name: str
    seed: str
    curve: tuple[float, ...]
    usd: float = 0.0
    by_model: bool = False
    """Speeds are predicted shares of the roofline's speed."""
    times_us: dict[str, float] = Field(default_factory=dict[str, float])
    """The champion's, by case."""
    published_us: dict[str, float] = Field(default_factory=dict[str, float])
    """Best published times of the problem's cases."""
    settings: dict[str, str] = Field(default_factory=dict[str, str])


Pair = tuple[CampaignCurve, CampaignCurve]


def compare_campaigns(params: Params, first: Sequence[str], second: Sequence[str]) -> dict[str, Any]:
    """Compare recorded campaigns by name.

    Raises SetupError when a campaign does not exist, has tried no kernel, or is named twice.
    """
    names = [*first, *second]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise SetupError(f"campaign {twice} is named twice")
    if "" in names:
        raise SetupError("a campaign's name is empty: separate names by single commas")
    sides = [[_read(params, name) for name in side] for side in (first, second)]
    if empty := next((c.name for side in sides for c in side if not c.curve), None):
        raise SetupError(f"campaign {empty} has tried no kernel")
    if len(kinds := {c.by_model for side in sides for c in side}) > 1:
        raise SetupError("a measured campaign cannot be compared with a predicted one")
    return {**compare(*sides), "by_model": kinds.pop()}


def _read(params: Params, name: str) -> CampaignCurve:
    recorded = read_campaign(params, name)
    champion = recorded.champion()
    return CampaignCurve(
        name=name,
        seed=recorded.run.params.get("search.seed", ""),
        curve=recorded.population.incumbent_scores(),
        usd=recorded.run.metrics.get("llm.usd", 0.0),
        by_model=any(entry.by_model for entry in recorded.population.entries()),
        settings=recorded.run.params,
        times_us=champion.evaluation.times_us if champion else {},
        published_us={case: time.us for case, time in published.best(recorded.published).items()},
    )


def compare(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> dict[str, Any]:
    """Return curves, final speeds and the test of two sides, each with a campaign that has tried a kernel.

    `ratio`: geometric mean over the pairs of first / second.
    """
    budget = min(len(c.curve) for c in (*first, *second))
    pairs = _pairs(first, second)
    gains = [_log(a.curve[budget - 1]) - _log(b.curve[budget - 1]) for a, b in pairs]
    enough = len(gains) >= LEAST_PAIRS
    p_first, p_second = (_sign_flips(gains), _sign_flips([-g for g in gains])) if enough else (None, None)
    return {
        "budget_kernels": budget,
        "sides": [_side(side, budget) for side in (first, second)],
        "pairs": [
            {side: {"campaign": c.name, "best": c.curve[budget - 1]} for side, c in zip(SIDES, pair, strict=True)}
            for pair in pairs
        ],
        "ratio": math.exp(statistics.mean(gains)) if gains else None,
        "p_first_better": p_first,
        "p_second_better": p_second,
        "conclusion": _conclusion(len(gains), p_first, p_second),
        "differ_in": _differences(first, second),
        "published": _beside_published([*first, *second]),
    }


def _pairs(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> list[Pair]:
    """Pair campaigns of equal seeds, in order; campaigns without a partner are not part of the test."""
    waiting, pairs = list(second), list[Pair]()
    for campaign in first:
        if partner := next((c for c in waiting if c.seed == campaign.seed), None):
            waiting.remove(partner)
            pairs.append((campaign, partner))
    return pairs


def _side(side: Sequence[CampaignCurve], budget: int) -> dict[str, Any]:
    curves = [c.curve[:budget] for c in side]
    finals = [c[-1] for c in curves]
    return {
        "campaigns": [c.name for c in side],
        **rounded({"best": statistics.median(finals), "worst_to_best": [min(finals), max(finals)]}),
        "usd": rounded(sum(c.usd for c in side)),
        **{name: rounded(np.quantile(curves, q, axis=0).tolist()) for name, q in QUANTILES.items()},
    }


def _sign_flips(gains: Sequence[float]) -> float:
    """Return how often chance alone gives a mean gain as large: one-sided p of the sign-flip test."""
    test: Any = stats.permutation_test
    found = test((gains,), np.mean, permutation_type="samples", alternative="greater", n_resamples=RESAMPLES, rng=0)
    return round(float(found.pvalue), 4)


def _log(speed: float) -> float:
    return math.log(max(speed, 1e-3))


def _conclusion(pairs: int, p_first: float | None, p_second: float | None) -> str:
    if p_first is None or p_second is None:
        return f"{pairs} pairs with equal search.seed; a test at 5 % needs {LEAST_PAIRS}: no conclusion"
    p = min(p_first, p_second)
    if p > 0.05:
        return f"no significant difference ({pairs} pairs, p = {p:.3f})"
    return f"the {'first' if p_first < p_second else 'second'} is better ({pairs} pairs, p = {p:.3f})"


def _beside_published(campaigns: Sequence[CampaignCurve]) -> list[dict[str, Any]]:
    """Return the champions' times of the cases for which somebody published one, in us."""
    known = {case: us for campaign in campaigns for case, us in campaign.published_us.items()}
    ours = {case: {c.name: c.times_us[case] for c in campaigns if case in c.times_us} for case in known}
    return [{"case": case, **ours[case], "best published": us} for case, us in known.items() if ours[case]]


def _differences(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> dict[str, list[str]]:
    """Return the parameters other than the seed in which the sides differ."""
    keys = sorted({k for c in (*first, *second) for k in c.settings} - {"search.seed"})
    values = {key: [{c.settings.get(key, "") for c in side} for side in (first, second)] for key in keys}
    return {key: [" or ".join(sorted(side)) for side in sides] for key, sides in values.items() if sides[0] != sides[1]}


def shown(comparison: dict[str, Any]) -> Iterator[str | Table]:
    """Yield a comparison for terminal or page."""
    figures = ("campaigns", "best", "worst_to_best", "usd")
    sides = [{"side": n, **{k: side[k] for k in figures}} for n, side in zip(SIDES, comparison["sides"], strict=True)]
    kind = "predicted" if comparison.get("by_model") else "measured"
    settings = [{"parameter": k, **dict(zip(SIDES, v, strict=True))} for k, v in comparison["differ_in"].items()]
    yield from parts(
        {
            f"incumbents after {comparison['budget_kernels']} kernels": sides,
            "first / second": ratio(comparison["ratio"]),
            "conclusion": comparison["conclusion"],
            "the sides differ in": settings,
            f"champions, {kind} us, beside the best published kernel": comparison.get("published", []),
        }
    )


def write_page(comparison: dict[str, Any], out: Path) -> None:
    """Write a comparison as a page with its curves."""
    by_model = comparison.get("by_model", False)
    curves = {", ".join(s["campaigns"]): (s["low"], s["median"], s["high"]) for s in comparison["sides"]}
    picture = plots.speeds(curves, {}, by_model)
    write(out, html("comparison.html", shown=shown(comparison), curves=picture, by_model=by_model))
