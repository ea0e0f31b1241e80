"""The result of a suite: its problems, and how many of their champions are faster than the two baselines."""

from typing import Literal

from kernel_scientist.records import factors
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.campaign_result import RunAddress
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import Interval


class BaselineSpeedup(Record):
    """How many times as fast a problem's champion is as a baseline."""

    ratio: Finite | None = None
    """None if there is no kernel, or no time of the baseline."""
    interval: Interval | None = None
    """Its interval; None for predicted times."""
    remark: str = ""
    """What there is to know of the baseline's time, such as why there is none."""

    def __str__(self) -> str:
        return factors.factor(self.ratio, self.interval)


class SuiteRow(Record):
    """What came of one problem."""

    problem: str
    """Folder and name of the problem."""
    reason: str
    """What decided, or why there is no campaign."""
    correct: bool = False
    """Whether a correct kernel was confirmed to be correct."""
    times: Literal["measured", "predicted", ""] = ""
    """What its times are; empty without a campaign."""
    over_eager: BaselineSpeedup = BaselineSpeedup()
    """Over the reference as it stands."""
    over_compiled: BaselineSpeedup = BaselineSpeedup()
    """Over the reference compiled by torch.compile."""
    campaign: str | None = None
    """Name of the campaign; None if the problem could not be used."""
    champion: str | None = None
    """Name of the champion; None if no kernel is correct."""
    verdict: Verdict | None = None
    """Of its confirmation."""
    confirmed: bool = False
    """Whether it was confirmed to be faster than what it had to beat."""
    kernels: int = 0
    """Kernels that were tried."""
    stopped: str = ""
    """Why the campaign ended."""
    usd: Finite = 0.0
    """Cost of the calls of models."""
    mlflow: RunAddress | None = None
    """The campaign's run."""


class SuiteShares(Record):
    """How champions compare with a baseline. A correct kernel counts only if the baseline has a time."""

    compared: int
    """Problems that count."""
    fast_p: dict[str, Finite]
    """By p: the share of problems with a correct kernel that is more than p times as fast."""
    fast_p_shown: dict[str, Finite]
    """The same, where only those count whose whole interval lies above p."""
    geomean_correct: Finite | None
    """Geometric mean of the ratios of correct kernels; None if there are none."""
    geomean_faster: Finite | None
    """The same of those above 1."""


class SuiteResult(Record):
    """The result of `suite`."""

    suite: str
    """Name of the suite."""
    problems: int
    """How many problems it has."""
    refused: int
    """How many of them had no campaign."""
    times: str
    """What the times are: `measured`, `predicted`, or both."""
    over_eager: SuiteShares
    """Against the reference as it stands."""
    over_compiled: SuiteShares
    """Against the reference compiled by torch.compile."""
    usd: Finite
    """Cost of the calls of models."""
    rows: tuple[SuiteRow, ...]
    """The problems, in their order."""
    mlflow: str | None = None
    """Id of the suite's run in MLflow."""
