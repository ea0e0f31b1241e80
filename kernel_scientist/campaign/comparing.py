"""Comparison of two ways of searching at equal budget: best-so-far curves with bands over repeats, and a paired test.

A side is one campaign or several repeats with different `search.seed`. The budget is the number of kernels that every
campaign of both sides has tried. Repeats with equal seeds are pairs. Speeds that two campaigns recorded are of
different runs, which give no quotient, so the incumbents of a pair are timed in one run, now. The test is a sign-flip
test over the pairs: its only assumption is that neither side is better. Fewer than five pairs cannot reach 5 %.
"""

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
from pydantic import Field

from kernel_scientist.campaign import results, rivals
from kernel_scientist.campaign.paired import sign_flips
from kernel_scientist.campaign.results import rounded
from kernel_scientist.population import curves
from kernel_scientist.problems import published
from kernel_scientist.records import factors
from kernel_scientist.records.base import Record
from kernel_scientist.records.comparison_result import (
    BesidePublished,
    CampaignPair,
    ComparisonResult,
    Incumbent,
    SideResult,
)
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Speedup
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params
from kernel_scientist.tracking.access import read_campaign

LOW, HIGH = 0.1, 0.9
"""Quantiles of a side's curves, beside the median."""
LEAST_PAIRS = 5
"""Pairs from which a one-sided p of 0.05 can be reached: 1/2^5."""
OWN_OF_A_CAMPAIGN = {"search.seed", "tracking.suite", "llm.replies"}
"""Parameters in which repeats differ as well."""


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

    def last(self, budget: int | None) -> int:
        """Return the position in the curve after so many kernels; None: where the campaign ended."""
        return (budget or len(self.curve)) - 1

    def incumbent(self, budget: int | None) -> str | None:
        """Return the incumbent's name after so many kernels, or at the end; None if there was none."""
        return self.incumbents[self.last(budget)] if self.incumbents else None


Pair = tuple[CampaignCurve, CampaignCurve]


def compare_campaigns(
    params: Params, first: Sequence[str], second: Sequence[str], timed: bool = True, at_end: bool = False
) -> ComparisonResult:
    """Compare recorded campaigns by name.

    `timed`: time the incumbents of each pair in one run, if this host has the target's device. `at_end`: compare what
    each campaign had found when it ended, for campaigns that had one budget of kernels and tokens. Raises SetupError
    when a campaign does not exist, has tried no kernel, or is named twice.
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
        found, why = _timed(params, sides[0], sides[1], at_end)
    return compare(sides[0], sides[1], found, why, at_end)


def _timed(
    params: Params, first: Sequence[CampaignCurve], second: Sequence[CampaignCurve], at_end: bool
) -> tuple[list[Speedup | None], str]:
    """Time the incumbents of each pair in one run; also return why there is none, if so."""
    budget, pairs = None if at_end else _budget(first, second), list[tuple[Kernel, Kernel]]()
    for one, other in _pairs(first, second):
        names = one.incumbent(budget), other.incumbent(budget)
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
    at_end: bool = False,
) -> ComparisonResult:
    """Return curves, pairs and the test of two sides, each with a campaign that has tried a kernel.

    `timed`: the comparison of the incumbents of each pair, in one run; `why_untimed`: why there is none. `at_end`: as
    for `compare_campaigns`.
    """
    budget, campaigns = _budget(first, second), _pairs(first, second)
    by_model, end = first[0].by_model, None if at_end else budget
    found = itertools.zip_longest(campaigns, timed[: len(campaigns)])
    pairs = [_paired(pair, end, speedup) for pair, speedup in found]
    known = [pair.ratio for pair in pairs if pair.ratio is not None]
    complete = bool(known) and len(known) == len(pairs)
    logs = [math.log(ratio) for ratio in known] if complete else []
    enough = len(logs) >= LEAST_PAIRS
    p_first, p_second = (sign_flips(logs), sign_flips([-g for g in logs])) if enough else (None, None)
    bounds = [(pair.ratio, pair.interval) for pair in pairs if pair.ratio is not None and pair.interval]
    ratio, interval = factors.mean(bounds) if complete and len(bounds) == len(known) else (None, None)
    if complete and by_model:
        ratio = math.exp(statistics.mean(logs))
    untimed = why_untimed or "a pair could not be timed"
    return ComparisonResult(
        budget_kernels=budget,
        at_end=at_end,
        by_model=by_model,
        sides=(_side(first, budget, end), _side(second, budget, end)),
        pairs=tuple(pairs),
        ratio=ratio,
        interval=interval,
        interval_why="" if interval else factors.PREDICTED if by_model else factors.TOO_FEW if complete else untimed,
        untimed="" if complete or by_model or not pairs else untimed,
        p_first_better=p_first,
        p_second_better=p_second,
        conclusion=_conclusion(len(pairs), len(logs), p_first, p_second),
        differ_in=_differences(first, second),
        published=_beside_published([*first, *second]),
    )


def _budget(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> int:
    return min(len(c.curve) for c in (*first, *second))


def _paired(pair: Pair, end: int | None, found: Speedup | None) -> CampaignPair:
    """Return how the incumbents of a pair compare: in one run, or predicted; without a ratio if that is not known."""
    first, second = (Incumbent(campaign=campaign.name, kernel=campaign.incumbent(end)) for campaign in pair)
    if pair[0].by_model:
        speeds = [campaign.curve[campaign.last(end)] for campaign in pair]
        ratio = speeds[0] / speeds[1] if min(speeds) > 0 else None
        return CampaignPair(first=first, second=second, ratio=ratio, interval_why=factors.PREDICTED)
    if found is None:
        return CampaignPair(first=first, second=second)
    shown = results.of_speedup(found)
    return CampaignPair(
        first=first,
        second=second,
        ratio=shown.ratio,
        interval=shown.interval,
        interval_why=shown.interval_why,
        first_us=results.mean([one.time_us for one in shown.cases]),
        second_us=results.mean([one.against_us for one in shown.cases]),
    )


def _pairs(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> list[Pair]:
    """Pair campaigns of equal seeds, in order; campaigns without a partner are not part of the test."""
    waiting, pairs = list(second), list[Pair]()
    for campaign in first:
        if partner := next((c for c in waiting if c.seed == campaign.seed), None):
            waiting.remove(partner)
            pairs.append((campaign, partner))
    return pairs


def _side(side: Sequence[CampaignCurve], budget: int, end: int | None) -> SideResult:
    speeds = [c.curve[:budget] for c in side]
    finals = [c.curve[c.last(end)] for c in side]
    ends = [c.bounds[c.last(end)] for c in side if c.bounds]
    if len(side) == 1 and side[0].bounds:
        low, high = zip(*side[0].bounds[:budget], strict=True)
    else:
        low, high = (np.quantile(speeds, share, axis=0).tolist() for share in (LOW, HIGH))
    medians = (statistics.median(low for low, _ in ends), statistics.median(high for _, high in ends)) if ends else None
    return SideResult(
        campaigns=tuple(c.name for c in side),
        best=rounded(statistics.median(finals)),
        worst_to_best=(rounded(min(finals)), rounded(max(finals))),
        best_interval=rounded(medians) if medians and finals[0] else None,
        usd=rounded(sum(c.usd for c in side)),
        low=tuple(rounded(list(low))),
        median=tuple(rounded(np.quantile(speeds, 0.5, axis=0).tolist())),
        high=tuple(rounded(list(high))),
    )


def _conclusion(pairs: int, timed: int, p_first: float | None, p_second: float | None) -> str:
    if pairs and not timed:
        return "no conclusion: recorded speeds of two campaigns are of different runs, which give no quotient"
    if p_first is None or p_second is None:
        return f"{pairs} pairs with equal search.seed; a test at 5 % needs {LEAST_PAIRS}: no conclusion"
    p = min(p_first, p_second)
    if p > 0.05:
        return f"no significant difference ({pairs} pairs, p = {p:.3f})"
    return f"the {'first' if p_first < p_second else 'second'} is better ({pairs} pairs, p = {p:.3f})"


def _beside_published(campaigns: Sequence[CampaignCurve]) -> tuple[BesidePublished, ...]:
    """Return the champions' times of the cases for which somebody published one, in us."""
    known = {case: us for campaign in campaigns for case, us in campaign.published_us.items()}
    ours = {case: {c.name: c.times_us[case] for c in campaigns if case in c.times_us} for case in known}
    return tuple(BesidePublished(case=case, ours_us=ours[case], best_us=us) for case, us in known.items() if ours[case])


def _differences(first: Sequence[CampaignCurve], second: Sequence[CampaignCurve]) -> dict[str, tuple[str, str]]:
    """Return the parameters other than the seed in which the sides differ."""
    keys = sorted({k for c in (*first, *second) for k in c.settings} - OWN_OF_A_CAMPAIGN)
    values = {key: [{c.settings.get(key, "") for c in side} for side in (first, second)] for key in keys}
    told = {key: (" or ".join(sorted(one)), " or ".join(sorted(two))) for key, (one, two) in values.items()}
    return {key: sides for key, sides in told.items() if values[key][0] != values[key][1]}
