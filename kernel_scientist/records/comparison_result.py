"""The result of `compare`: two ways of searching at equal budget."""

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.results import Interval


class Incumbent(Record):
    """The incumbent of a campaign when the budget was used."""

    campaign: str
    """Name of the campaign."""
    kernel: str | None
    """Name of the kernel; None if there was none."""


class CampaignPair(Record):
    """Two campaigns with one seed, and how the first's incumbent compares with the second's."""

    first: Incumbent
    """Of the first side."""
    second: Incumbent
    """Of the second side."""
    ratio: Finite | None = None
    """How many times faster the first's is, measured in one run or predicted; None if that is not known."""
    interval: Interval | None = None
    """Its interval."""
    interval_why: str = ""
    """Why there is none; empty if there is one."""
    first_us: Finite | None = None
    """Geometric mean of the first's times in that run, in us."""
    second_us: Finite | None = None
    """The same of the second's."""


class SideResult(Record):
    """One side: a campaign, or repeats of it. Speeds are of the incumbents' own runs."""

    campaigns: tuple[str, ...]
    """Their names."""
    best: Finite
    """Median of the speeds at the end."""
    worst_to_best: Interval
    """The lowest and the highest of them."""
    best_interval: Interval | None
    """Medians of the ends of their intervals; None for predictions."""
    usd: Finite
    """Cost of the calls of models."""
    low: tuple[Finite, ...]
    """After each kernel: the lower end of the interval of a single campaign, the lower decile of repeats."""
    median: tuple[Finite, ...]
    """After each kernel: the median."""
    high: tuple[Finite, ...]
    """After each kernel: the upper end."""


class BesidePublished(Record):
    """A case for which somebody published a time."""

    case: str
    """Name of the case."""
    ours_us: dict[str, Finite]
    """The champions' times, by campaign."""
    best_us: Finite
    """The best published time."""


class ComparisonResult(Record):
    """The result of `compare`."""

    budget_kernels: int
    """Kernels that every campaign of both sides has tried."""
    at_end: bool = False
    """Whether the pairs and the best speeds are those of each campaign's end; else after so many kernels."""
    by_model: bool
    """Whether speeds are predicted."""
    sides: tuple[SideResult, SideResult]
    """The first and the second."""
    pairs: tuple[CampaignPair, ...]
    """Campaigns of equal seeds."""
    ratio: Finite | None
    """Geometric mean over the pairs of first / second; None if a pair was not timed in one run."""
    interval: Interval | None
    """Its interval."""
    interval_why: str
    """Why there is none; empty if there is one."""
    untimed: str
    """Why a pair was not timed; empty if all were, or need not be."""
    p_first_better: Finite | None
    """One-sided p of the sign-flip test; None with too few pairs."""
    p_second_better: Finite | None
    """The same for the second side."""
    conclusion: str
    """What the test says."""
    differ_in: dict[str, tuple[str, str]]
    """Parameters other than the seed in which the sides differ, with the values of both."""
    published: tuple[BesidePublished, ...]
    """The champions beside published times."""
