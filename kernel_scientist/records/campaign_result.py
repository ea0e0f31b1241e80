"""The result of `optimize`, as programs and people read it. Its JSON is what `--json` prints, apart from the curve."""

from pydantic import Field

from kernel_scientist.records import factors
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import BarResult, Interval, PairResult, PredictedResult, status_text


class OwnRun(Record):
    """A kernel's times in its own run, in us."""

    geomean_us: Finite | None
    """Its time."""
    reference_us: Finite | None
    """The reference's."""
    speedup: Finite | None
    """Their ratio."""
    interval: Interval | None
    """Its interval."""


class FinalistResult(Record):
    """A finalist of a campaign, in the run that timed all finalists beside each other."""

    rank: int
    """1: the fastest."""
    kernel: str
    """Its name."""
    geomean_us: Finite | None
    """Its time."""
    reference_us: Finite | None
    """The reference's."""
    speedup: Finite | None
    """Their ratio."""
    interval: Interval | None
    """Its interval."""
    recorded: OwnRun
    """What was known of it before."""


class Standing(Record):
    """What became of the standing champion when a campaign ended."""

    replaced: bool
    """Whether the campaign's champion took its place."""
    reason: str
    """Why, in a sentence."""
    approval: str = ""
    """Who decided; empty if nobody was asked."""


class RunAddress(Record):
    """Where a campaign is recorded."""

    uri: str
    """MLflow's tracking store."""
    run: str
    """The campaign's run."""


class CurvePoint(Record):
    """A kernel's speed in its own run, and the incumbent's then: over the reference, or the predicted share of the
    roofline's; None if it is not resolved."""

    index: int
    """Number of the kernel."""
    kernel: str
    """Its name."""
    experiment: str
    """Its title."""
    verdict: str
    """Its verdict."""
    score: str
    """`measured` or `predicted`."""
    speedup: Finite | None
    """Its speed."""
    speedup_low: Finite | None
    """Lower end of the interval."""
    speedup_high: Finite | None
    """Upper end."""
    best: Finite
    """The incumbent's speed."""
    best_low: Finite
    """Lower end of the interval."""
    best_high: Finite
    """Upper end."""


class CampaignResult(Record):
    """The result of `optimize`. Its speedup is the confirmation's, over the reference."""

    campaign: str
    """Name of the campaign."""
    problem: str
    """Name of the problem."""
    target: str
    """Name of the resolved target."""
    start: str
    """What it started from, in a sentence."""
    champion: str | None
    """Name of the best kernel; None if no kernel is correct."""
    champion_reason: str
    """Why that one."""
    final: tuple[FinalistResult, ...]
    """The finalists, fastest first; empty without a final."""
    verdict: Verdict | None
    """Of the confirmation."""
    status: str
    """`confirmed`, `correct` if there was nothing to be faster than, or `not confirmed`."""
    confirmed: bool
    """Whether the champion was found faster than what it had to beat."""
    why: str
    """The status in a sentence."""
    speedup: Finite | None
    """Over the reference, in the confirmation."""
    interval: Interval | None
    """Its interval."""
    interval_why: str
    """Why there is none; empty if there is one."""
    cases: tuple[PairResult, ...]
    """Times of champion and reference in the confirmation."""
    busy: str
    """A sentence if others used the machine during the confirmation; else empty."""
    bars: tuple[BarResult, ...]
    """What else stands beside the champion."""
    predicted: PredictedResult | None
    """Predicted times of the champion; None without a model of the GPU."""
    kernels: int
    """Kernels that were tried."""
    verdicts: dict[str, int]
    """Kernels by verdict."""
    usd: Finite
    """Cost of the calls of models."""
    tokens: int
    """Tokens of these calls."""
    stopped: str
    """Why the campaign ended."""
    resume: str = ""
    """The command that goes on with it; empty if it did all that it was to do."""
    mlflow: RunAddress
    """Where it is recorded."""
    source: str | None
    """The champion's file."""
    standing: Standing | None = None
    """What became of the standing champion; None without a champion."""
    curve: tuple[CurvePoint, ...] = Field(default=(), repr=False)
    """Speed over the number of kernels; the command writes it into curve.csv."""

    @property
    def told(self) -> str:
        """What the confirmation came to, and why."""
        return status_text(self.status, self.why)

    @property
    def factor(self) -> str:
        """The speedup beside its interval; empty if nothing was confirmed."""
        return factors.factor(self.speedup, self.interval)
