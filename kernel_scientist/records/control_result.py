"""The result of `control`: two ways of searching at equal budget, over several problems with repeats."""

from typing import Literal

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.comparison_result import ComparisonResult
from kernel_scientist.records.results import Interval

Side = Literal["first", "second"]


class ControlBudget(Record):
    """The limits of each campaign of both sides. None: no limit."""

    kernels: int
    """Kernels, seeds included."""
    tokens: int | None
    """Tokens of models' calls, prompts and replies together."""
    usd: Finite | None
    """Cost of the calls of models."""
    minutes: Finite
    """Wall time of the search."""


class ControlCampaign(Record):
    """One campaign of a control."""

    problem: str
    """Folder and name of its problem."""
    side: Side
    """The side that it belongs to."""
    seed: int
    """Its `search.seed`: the number of the repeat. Campaigns of one problem and seed are a pair."""
    campaign: str | None = None
    """Its name; None if it has no result."""
    kernels: int = 0
    """Kernels that were tried."""
    tokens: int = 0
    """Tokens of the calls of models."""
    usd: Finite = 0.0
    """Their cost."""
    stopped: str = ""
    """Why it ended, or why there is no result."""


class ControlProblem(Record):
    """How the two sides compare on one problem."""

    problem: str
    """Folder and name of the problem."""
    ratio: Finite | None
    """Geometric mean of first / second over its pairs; None if a pair is not known."""
    pairs: int
    """Pairs of campaigns with a result."""
    missing: int
    """Pairs in which a campaign has no result: they are not part of the ratio."""
    reason: str
    """Why there is no ratio; empty if there is one."""
    comparison: ComparisonResult | None = None
    """The pairs, each timed in one run, or predicted; None if there are none."""


class SideUse(Record):
    """What the campaigns of a side used together."""

    campaigns: int
    """Campaigns with a result."""
    kernels: int
    """Kernels that they tried."""
    tokens: int
    """Tokens of their calls of models."""
    usd: Finite
    """Cost of these calls."""


class SignFlipTest(Record):
    """A two-sided sign-flip test of the mean difference."""

    unit: str
    """What has one difference: a problem, or a pair."""
    count: int
    """How many there are."""
    least: Finite
    """The smallest p that so many can give."""
    p: Finite | None
    """How often chance alone gives a mean as far from none; None if `least` is above 5 %."""


class ControlResult(Record):
    """The result of `control`. A ratio above 1 says that the first side's kernels are faster."""

    control: str
    """Its name."""
    overrides: tuple[tuple[str, ...], tuple[str, ...]]
    """Parameters of the first and of the second side, as `KEY=VALUE`."""
    repeats: int
    """Campaigns of each side on each problem."""
    budget: ControlBudget
    """The limits of each campaign."""
    common_kernels: int
    """Kernels that every campaign tried: the part of the budget that all used."""
    common_tokens: int
    """Tokens that every campaign used."""
    used: tuple[SideUse, SideUse]
    """What the first and the second side used."""
    times: Literal["measured", "predicted", ""]
    """What the ratios are of; empty if there are none."""
    ratio: Finite | None
    """Geometric mean over the problems, which count alike; None if no problem has a ratio."""
    interval: Interval | None
    """Its 95 % interval, with the problem as the unit."""
    interval_why: str
    """Why there is none; empty if there is one."""
    freedom: int
    """Degrees of freedom of the interval: one less than problems with a ratio."""
    over_problems: SignFlipTest
    """The test whose units are problems: it speaks of such problems."""
    over_pairs: SignFlipTest
    """The test whose units are pairs: it speaks of these problems alone."""
    conclusion: str
    """What the tests say."""
    problems: tuple[ControlProblem, ...]
    """The problems, in their order."""
    campaigns: tuple[ControlCampaign, ...]
    """All campaigns, in the order in which they run."""
