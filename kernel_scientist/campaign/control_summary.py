"""The result of a control from those of its problems: ratios, intervals and tests, and what each side used."""

import math
from collections.abc import Sequence

from kernel_scientist.campaign import paired
from kernel_scientist.campaign.paired import LEAST_UNITS
from kernel_scientist.campaign.results import rounded
from kernel_scientist.records.comparison_result import ComparisonResult
from kernel_scientist.records.control_result import (
    ControlBudget,
    ControlCampaign,
    ControlProblem,
    ControlResult,
    Side,
    SideUse,
    SignFlipTest,
)
from kernel_scientist.records.params import Budget
from kernel_scientist.records.text import number_of

ONE = "one problem says nothing of others: an interval over problems needs two"
NONE = "no problem has a ratio"
LEVEL = 0.05
"""Of the tests, which are two-sided."""


def of_problem(problem: str, repeats: int, reason: str, comparison: ComparisonResult | None = None) -> ControlProblem:
    """Return how the sides compare on a problem. `reason`: why there is no comparison."""
    if comparison is None:
        return ControlProblem(problem=problem, ratio=None, pairs=0, missing=repeats, reason=reason)
    pairs, untimed = len(comparison.pairs), comparison.untimed or "a pair has no ratio"
    logs = _logs(comparison)
    return ControlProblem(
        problem=problem,
        ratio=rounded(math.exp(math.fsum(logs) / len(logs))) if logs else None,
        pairs=pairs,
        missing=repeats - pairs,
        reason="" if logs else untimed,
        comparison=comparison,
    )


def _logs(comparison: ComparisonResult | None) -> list[float]:
    """Return the logarithms of the ratios of a problem's pairs; none unless all are known."""
    ratios = [pair.ratio for pair in comparison.pairs] if comparison else []
    known = [math.log(ratio) for ratio in ratios if ratio is not None and ratio > 0]
    return known if len(known) == len(ratios) else []


def summary(
    control: str,
    overrides: tuple[tuple[str, ...], tuple[str, ...]],
    repeats: int,
    budget: Budget,
    problems: Sequence[ControlProblem],
    campaigns: Sequence[ControlCampaign],
) -> ControlResult:
    """Return the result of a control."""
    logs = [found for one in problems if (found := _logs(one.comparison))]
    means = [math.fsum(found) / len(found) for found in logs]
    ratio, interval = paired.over_problems(means) if means else (None, None)
    by_problem = paired.two_sided("problem", means)
    by_pair = paired.two_sided("pair", paired.weighted(logs))
    done = [one for one in campaigns if one.campaign]
    predicted = {one.comparison.by_model for one in problems if one.comparison and one.ratio}
    return ControlResult(
        control=control,
        overrides=overrides,
        repeats=repeats,
        budget=ControlBudget(kernels=budget.kernels, tokens=budget.tokens, usd=budget.usd, minutes=budget.minutes),
        common_kernels=min((one.kernels for one in done), default=0),
        common_tokens=min((one.tokens for one in done), default=0),
        used=(_used("first", done), _used("second", done)),
        times="" if not predicted else "predicted" if predicted.pop() else "measured",
        ratio=ratio,
        interval=interval,
        interval_why="" if interval else ONE if means else NONE,
        freedom=max(0, len(means) - 1),
        over_problems=by_problem,
        over_pairs=by_pair,
        conclusion=_conclusion(sum(means), by_problem, by_pair),
        problems=tuple(problems),
        campaigns=tuple(campaigns),
    )


def _used(side: Side, done: Sequence[ControlCampaign]) -> SideUse:
    own = [one for one in done if one.side == side]
    return SideUse(
        campaigns=len(own),
        kernels=sum(one.kernels for one in own),
        tokens=sum(one.tokens for one in own),
        usd=sum(one.usd for one in own),
    )


def _conclusion(total: float, by_problem: SignFlipTest, by_pair: SignFlipTest) -> str:
    """Return what the tests say. `total`: the sum of the problems' mean logarithms."""
    better = f"the {'first' if total > 0 else 'second'} is better"
    many, pairs = number_of(by_problem.count, "problem"), number_of(by_pair.count, "pair")
    if not by_problem.count:
        return f"no conclusion: {NONE}"
    if by_problem.p is not None:
        if by_problem.p <= LEVEL:
            return f"{better} on problems like these ({many}, p = {by_problem.p:.3f})"
        return f"no significant difference ({many}, p = {by_problem.p:.3f})"
    short = f"a test over problems at 5 % needs {LEAST_UNITS}, so nothing is said of other problems"
    if by_pair.p is None:
        return f"no conclusion: {pairs} of {many} cannot reach 5 %, which takes {LEAST_UNITS}; {short}"
    if by_pair.p <= LEVEL:
        on = "this problem" if by_problem.count == 1 else "these problems"
        return f"{better} on {on} ({pairs} of {many}, p = {by_pair.p:.3f}); {short}"
    return f"no significant difference ({pairs} of {many}, p = {by_pair.p:.3f}); {short}"
