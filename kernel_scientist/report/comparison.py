"""Comparison of two ways of searching at equal budget: best-so-far curves with bands over repeats, and a paired test.

A side is one campaign or several repeats with different `search.seed`. The budget is the number of kernels that every
campaign of both sides has tried. Repeats with equal seeds are pairs. Speeds that two campaigns recorded are of
different runs, which give no quotient, so the incumbents of a pair are timed in one run, now. The test is a sign-flip
test over the pairs: its only assumption is that neither side is better. Fewer than five pairs cannot reach 5 %.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from scipy import stats

from kernel_scientist.campaign import results, rivals
from kernel_scientist.campaign.results import rounded
from kernel_scientist.population import curves
from kernel_scientist.problems import published
from kernel_scientist.records import factors
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Speedup
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params
from kernel_scientist.report.output import Table, html, parts, write
from kernel_scientist.report.pages import plots
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
    """Each speed is of the incumbent's own run."""
    bounds: tuple[tuple[float, float], ...] = ()
    """Their intervals; empty for predictions, which have none."""
    incumbents: tuple[str | None, ...] = ()
    """The incumbent's name after each kernel."""
    kernels: dict[str, Kernel] = Field(default_factory=dict[str, Kernel])
    """All kernels that were the incumbent, by name."""
    usd: float = 0.0
    by_model: bool = False
    """Speeds are predicted shares of the roofline's speed."""
    times_us: dict[str, float] = Field(default_factory=dict[str, float])
    """The champion's, by case."""
    published_us: dict[str, float] = Field(default_factory=dict[str, float])
    """Best published times of the problem's cases."""
    settings: dict[str, str] = Field(default_factory=dict[str, str])


Pair = tuple[CampaignCurve, CampaignCurve]


def compare_campaigns(
    params: Params, first: Sequence[str], second: Sequence[str], timed: bool = True
) -> dict[str, Any]:
    """Compare recorded campaigns by name.

    `timed`: time the incumbents of each pair in one run, if this host has the target's device. Raises SetupError when a
    campaign does not exist, has tried no kernel, or is named twice.
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
    found, why = list[Speedup | None](), "nobody asked for it"
    if timed and not kinds.pop():
        found, why = _timed(params, sides[0], sides[1])
    return compare(sides[0], sides[1], found, why)


def _timed(
    params: Params, first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]
) -> tuple[list[Speedup | None], str]:
    """Time the incumbents of each pair in one run; also return why there is none, if so."""
    budget, pairs = _budget(first, second), list[tuple[Kernel, Kernel]]()
    for one, other in _pairs(first, second):
        names = one.incumbents[budget - 1], other.incumbents[budget - 1]
        if names[0] is None or names[1] is None:
            return [], "a campaign had no incumbent by then"
        pairs.append((one.kernels[names[0]], other.kernels[names[1]]))
    return rivals.timed(params, pairs)


def _read(params: Params, name: str) -> CampaignCurve:
    recorded = read_campaign(params, name)
    population, champion = recorded.population, recorded.champion()
    points, incumbents = curves.of(population), population.incumbents()
    by_model = any(entry.by_model for entry in population.entries())
    return CampaignCurve(
        name=name,
        seed=recorded.run.params.get("search.seed", ""),
        curve=tuple(point.ratio for point in points),
        bounds=() if by_model else tuple((point.low, point.high) for point in points),
        incumbents=incumbents,
        kernels={name: population.get(name).kernel for name in dict.fromkeys(incumbents) if name},
        usd=recorded.run.metrics.get("llm.usd", 0.0),
        by_model=by_model,
        settings=recorded.run.params,
        times_us=champion.evaluation.times_us if champion else {},
        published_us={case: time.us for case, time in published.best(recorded.published).items()},
    )


def compare(
    first: Sequence[CampaignCurve],
    second: Sequence[CampaignCurve],
    timed: Sequence[Speedup | None] = (),
    why_untimed: str = "",
) -> dict[str, Any]:
    """Return curves, pairs and the test of two sides, each with a campaign that has tried a kernel.

    `timed`: the comparison of the incumbents of each pair, in one run; `why_untimed`: why there is none. `ratio`:
    geometric mean over the pairs of first / second, with its interval; None if a pair was not timed in one run.
    """
    budget, pairs = _budget(first, second), _pairs(first, second)
    by_model = first[0].by_model
    gains = [_gain(pair, budget, found) for pair, found in itertools.zip_longest(pairs, timed[: len(pairs)])]
    known = [gain for gain in gains if gain is not None]
    complete = bool(known) and len(known) == len(gains)
    logs = [math.log(gain["ratio"]) for gain in known] if complete else []
    enough = len(logs) >= LEAST_PAIRS
    p_first, p_second = (_sign_flips(logs), _sign_flips([-g for g in logs])) if enough else (None, None)
    bounds = [(gain["ratio"], gain["interval"]) for gain in known if gain["interval"]]
    ratio, interval = factors.mean(bounds) if complete and len(bounds) == len(known) else (None, None)
    if complete and by_model:
        ratio = math.exp(statistics.mean(logs))
    untimed = why_untimed or "a pair could not be timed"
    rows = [
        {**{s: _place(c, budget) for s, c in zip(SIDES, pair, strict=True)}, **(gain or {})}
        for pair, gain in zip(pairs, gains, strict=True)
    ]
    return {
        "budget_kernels": budget,
        "by_model": by_model,
        "sides": [_side(side, budget) for side in (first, second)],
        "pairs": rows,
        "ratio": ratio,
        "interval": list(interval) if interval else None,
        "interval_why": "" if interval else factors.PREDICTED if by_model else factors.TOO_FEW if complete else untimed,
        "untimed": "" if complete or by_model or not pairs else untimed,
        "p_first_better": p_first,
        "p_second_better": p_second,
        "conclusion": _conclusion(len(pairs), len(logs), p_first, p_second),
        "differ_in": _differences(first, second),
        "published": _beside_published([*first, *second]),
    }


def _budget(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> int:
    return min(len(c.curve) for c in (*first, *second))


def _place(campaign: CampaignCurve, budget: int) -> dict[str, Any]:
    kernel = campaign.incumbents[budget - 1] if campaign.incumbents else None
    return {"campaign": campaign.name, "kernel": kernel}


def _gain(pair: Pair, budget: int, found: Speedup | None) -> dict[str, Any] | None:
    """Return first / second of a pair: of one run, or predicted; None without one."""
    if pair[0].by_model:
        speeds = [campaign.curve[budget - 1] for campaign in pair]
        return (
            {"ratio": speeds[0] / speeds[1], "interval": None, "interval_why": factors.PREDICTED}
            if min(speeds) > 0
            else None
        )
    if found is None:
        return None
    shown = results.of_speedup(found)
    return {
        "first_us": results.mean([one.time_us for one in shown.cases]),
        "second_us": results.mean([one.against_us for one in shown.cases]),
        **shown.model_dump(mode="json", include={"ratio", "interval", "interval_why"}),
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
    """Return a side's figures: speeds of the incumbents' own runs. The median's interval is that of the bounds'
    medians; the band of a single campaign is its intervals, that of repeats their quantiles."""
    speeds = [c.curve[:budget] for c in side]
    finals = [c[-1] for c in speeds]
    ends = [c.bounds[budget - 1] for c in side if c.bounds]
    bands = {name: np.quantile(speeds, q, axis=0).tolist() for name, q in QUANTILES.items()}
    if len(side) == 1 and side[0].bounds:
        low, high = zip(*side[0].bounds[:budget], strict=True)
        bands |= {"low": list(low), "high": list(high)}
    return {
        "campaigns": [c.name for c in side],
        **rounded({"best": statistics.median(finals), "worst_to_best": [min(finals), max(finals)]}),
        "best_interval": rounded([statistics.median(e[0] for e in ends), statistics.median(e[1] for e in ends)])
        if ends and finals[0]
        else None,
        "usd": rounded(sum(c.usd for c in side)),
        **rounded(bands),
    }


def _sign_flips(gains: Sequence[float]) -> float:
    """Return how often chance alone gives a mean gain as large: one-sided p of the sign-flip test."""
    test: Any = stats.permutation_test
    found = test((gains,), np.mean, permutation_type="samples", alternative="greater", n_resamples=RESAMPLES, rng=0)
    return round(float(found.pvalue), 4)


def _conclusion(pairs: int, timed: int, p_first: float | None, p_second: float | None) -> str:
    if pairs and not timed:
        return "no conclusion: recorded speeds of two campaigns are of different runs, which give no quotient"
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
    by_model = comparison["by_model"]
    sides = [
        {
            "side": name,
            "campaigns": side["campaigns"],
            "speed, own runs": _speed(side["best"], side["best_interval"], by_model),
            "usd": side["usd"],
        }
        for name, side in zip(SIDES, comparison["sides"], strict=True)
    ]
    pairs = [
        {
            **{side: f"{pair[side]['kernel'] or ''} of {pair[side]['campaign']}" for side in SIDES},
            "first, us": pair.get("first_us"),
            "second, us": pair.get("second_us"),
            "first / second": _speed(pair.get("ratio"), pair.get("interval"), by_model),
        }
        for pair in comparison["pairs"]
    ]
    kind = "predicted" if by_model else "measured"
    settings = [{"parameter": k, **dict(zip(SIDES, v, strict=True))} for k, v in comparison["differ_in"].items()]
    untimed = f"not measured, as the incumbents were not timed in one run: {comparison['untimed']}"
    yield from parts(
        {
            f"incumbents after {comparison['budget_kernels']} kernels": sides,
            "pairs, predicted" if by_model else "pairs, each timed in one run": pairs,
            "first / second": untimed
            if comparison["untimed"]
            else _speed(comparison["ratio"], comparison["interval"], by_model),
            "conclusion": comparison["conclusion"],
            "the sides differ in": settings,
            f"champions, {kind} us, beside the best published kernel": comparison.get("published", []),
        }
    )


def _speed(ratio: float | None, interval: Sequence[float] | None, by_model: bool) -> str:
    """Return a factor with its interval; a predicted one has none."""
    return f"{ratio:.4g} predicted" if by_model and ratio else factors.factor(ratio, interval)


def write_page(comparison: dict[str, Any], out: Path) -> None:
    """Write a comparison as a page with its curves."""
    by_model = comparison.get("by_model", False)
    lines = {", ".join(s["campaigns"]): (s["low"], s["median"], s["high"]) for s in comparison["sides"]}
    picture = plots.speeds(lines, {}, by_model)
    write(out, html("comparison.html", shown=shown(comparison), curves=picture, by_model=by_model))
