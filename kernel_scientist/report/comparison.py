"""Comparison of two ways of searching at equal budget: best-so-far curves with bands over repeats, and a paired test.

A side is one campaign or several repeats with different `search.seed`. The budget is the number of kernels that every
campaign of both sides has tried. Repeats with equal seeds are pairs. The test is a sign-flip test over the pairs: its
only assumption is that neither side is better. Fewer than five pairs cannot reach 5 %.
"""

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from pydantic import Field

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.tracking.access import read_campaign

BAND = (0.1, 0.9)
EXACT = 16
"""Up to this number of pairs all sign flips are enumerated; beyond it they are sampled."""
SAMPLES = 20_000
LEAST_PAIRS = 5
"""Pairs from which a one-sided p of 0.05 can be reached: 1/2^5."""


class CampaignCurve(Record):
    """A campaign's incumbent speed after each kernel, and its cost."""

    name: str
    seed: str
    curve: tuple[float, ...]
    usd: float = 0.0
    by_model: bool = False
    """Speeds are predicted shares of the roofline's speed."""
    settings: dict[str, str] = Field(default_factory=dict[str, str])


def curve(population: Population) -> tuple[float, ...]:
    """Return the incumbent's score after each kernel, 0 while no kernel is correct.

    The incumbent changes only by a test, so a lucky timing does not raise the curve.
    """
    scores: list[float] = []
    so_far = Population()
    for trial in population:
        so_far = so_far.add(trial)
        incumbent = so_far.best()
        scores.append(score(incumbent) if incumbent else 0.0)
    return tuple(scores)


def compare_campaigns(params: Params, first: Sequence[str], second: Sequence[str]) -> dict[str, Any]:
    """Compare recorded campaigns by name.

    Raises SetupError when a campaign does not exist, has tried no kernel, or is on both sides.
    """
    if both := sorted(set(first) & set(second)):
        raise SetupError(f"campaign {both[0]} is on both sides")
    sides = [[_read(params, name) for name in side] for side in (first, second)]
    if empty := next((c.name for side in sides for c in side if not c.curve), None):
        raise SetupError(f"campaign {empty} has tried no kernel")
    if len(kinds := {c.by_model for side in sides for c in side}) > 1:
        raise SetupError("a measured campaign cannot be compared with a predicted one")
    return {**compare(*sides), "by_model": kinds.pop()}


def _read(params: Params, name: str) -> CampaignCurve:
    recorded = read_campaign(params, name)
    return CampaignCurve(
        name=name,
        seed=recorded.run.params.get("search.seed", ""),
        curve=curve(recorded.population),
        usd=recorded.run.metrics.get("llm.usd", 0.0),
        by_model=any(t.evaluation.by_model for t in recorded.population),
        settings=recorded.run.params,
    )


def write(comparison: dict[str, Any], out: Path) -> None:
    """Write a comparison as a page with its curves."""
    templates = Environment(loader=PackageLoader("kernel_scientist.report", "."), autoescape=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    by_model = comparison.get("by_model")
    page = templates.get_template("comparison.html")
    out.write_text(page.render(comparison=comparison, plot=_plot(comparison), by_model=by_model))


def _plot(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return lines and bands in SVG coordinates; the vertical axis is logarithmic."""
    values = [v for side in comparison["sides"] for v in (*side["low"], *side["high"]) if v > 0]
    low = math.floor(math.log2(min(values))) if values else 0
    high = max(math.ceil(math.log2(max(values))), low + 1) if values else 1
    last = max(1, comparison["budget_kernels"] - 1)

    def points(series: Sequence[float]) -> list[str]:
        return [
            f"{60 + 820 * i / last:.1f},{260 - 240 * (math.log2(max(v, 2.0**low)) - low) / (high - low):.1f}"
            for i, v in enumerate(series)
        ]

    sides = [
        {
            "name": ", ".join(side["campaigns"]),
            "line": " ".join(points(side["median"])),
            "band": " ".join([*points(side["high"]), *reversed(points(side["low"]))]),
        }
        for side in comparison["sides"]
    ]
    ticks = [{"y": 260 - 240 * (e - low) / (high - low), "label": f"{2.0**e:g}x"} for e in range(low, high + 1)]
    return {"sides": sides, "ticks": ticks}


def compare(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> dict[str, Any]:
    """Return curves, final speeds and the test of two sides. `ratio`: geometric mean over the pairs of first / second.

    Raises ValueError for a side without a campaign, or when no kernel was tried.
    """
    if not first or not second or not all(c.curve for c in (*first, *second)):
        raise ValueError("each side needs a campaign that has tried a kernel")
    budget = min(len(c.curve) for c in (*first, *second))
    pairs = _pairs(first, second)
    gains = [_log(a.curve[budget - 1]) - _log(b.curve[budget - 1]) for a, b in pairs]
    return {
        "budget_kernels": budget,
        "sides": [_side(side, budget) for side in (first, second)],
        "pairs": [{"first": _best(a, budget), "second": _best(b, budget)} for a, b in pairs],
        "ratio": math.exp(statistics.mean(gains)) if gains else None,
        "p_first_better": round(_sign_flips(gains), 4) if len(gains) >= LEAST_PAIRS else None,
        "p_second_better": round(_sign_flips([-g for g in gains]), 4) if len(gains) >= LEAST_PAIRS else None,
        "conclusion": _conclusion(gains),
        "differ_in": _differences(first, second),
    }


def _pairs(
    first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]
) -> list[tuple[CampaignCurve, CampaignCurve]]:
    """Pair campaigns of equal seeds, in order; campaigns without a partner are not part of the test."""
    waiting = list(second)
    pairs: list[tuple[CampaignCurve, CampaignCurve]] = []
    for campaign in first:
        partner = next((c for c in waiting if c.seed == campaign.seed), None)
        if partner is not None:
            waiting.remove(partner)
            pairs.append((campaign, partner))
    return pairs


def _best(campaign: CampaignCurve, budget: int) -> dict[str, Any]:
    return {"campaign": campaign.name, "best": campaign.curve[budget - 1]}


def _side(side: Sequence[CampaignCurve], budget: int) -> dict[str, Any]:
    finals = [c.curve[budget - 1] for c in side]
    low, high = (_quantiles([c.curve for c in side], budget, q) for q in BAND)
    return {
        "campaigns": [c.name for c in side],
        "best": round(statistics.median(finals), 4),
        "worst_to_best": [round(min(finals), 4), round(max(finals), 4)],
        "usd": round(sum(c.usd for c in side), 4),
        "median": _quantiles([c.curve for c in side], budget, 0.5),
        "low": low,
        "high": high,
    }


def _quantiles(curves: Sequence[Sequence[float]], budget: int, q: float) -> list[float]:
    """Return the quantile `q` over the curves at each number of kernels, linearly interpolated."""
    quantiles: list[float] = []
    for index in range(budget):
        ordered = sorted(c[index] for c in curves)
        position = q * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        quantiles.append(round(ordered[below] + (position - below) * (ordered[above] - ordered[below]), 4))
    return quantiles


def _sign_flips(gains: Sequence[float]) -> float:
    """Return how often chance alone gives a mean gain as large: one-sided p of the sign-flip test."""
    observed, size = sum(gains) - 1e-12, [abs(g) for g in gains]
    if len(gains) <= EXACT:
        flips = itertools.product((1, -1), repeat=len(gains))
        sums = [sum(s * g for s, g in zip(signs, size, strict=True)) for signs in flips]
        return sum(total >= observed for total in sums) / len(sums)
    rng = random.Random(0)
    as_large = sum(sum(rng.choice((1, -1)) * g for g in size) >= observed for _ in range(SAMPLES))
    return (as_large + 1) / (SAMPLES + 1)


def _log(speed: float) -> float:
    return math.log(max(speed, 1e-3))


def _conclusion(gains: Sequence[float]) -> str:
    if len(gains) < LEAST_PAIRS:
        return f"{len(gains)} pairs with equal search.seed; a test at 5 % needs {LEAST_PAIRS}: no conclusion"
    p, q = _sign_flips(gains), _sign_flips([-g for g in gains])
    if min(p, q) > 0.05:
        return f"no significant difference ({len(gains)} pairs, p = {min(p, q):.3f})"
    return f"the {'first' if p < q else 'second'} is better ({len(gains)} pairs, p = {min(p, q):.3f})"


def _differences(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> dict[str, list[str]]:
    """Return the parameters other than the seed in which the sides differ."""
    keys = sorted({k for c in (*first, *second) for k in c.settings} - {"search.seed"})
    differences: dict[str, list[str]] = {}
    for key in keys:
        values = [{c.settings.get(key, "") for c in side} for side in (first, second)]
        if values[0] != values[1]:
            differences[key] = [" or ".join(sorted(side)) for side in values]
    return differences
