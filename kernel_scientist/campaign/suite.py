"""A suite: one campaign for each of many problems, and what came of them together.

Its result is a file in the suite's folder. A suite that is started again skips problems that have a result, and resumes
the campaigns that it had begun.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist import problems
from kernel_scientist.campaign import campaign_process, stopping
from kernel_scientist.campaign.campaign_process import folder_of, label
from kernel_scientist.hardware import addresses
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import geomean
from kernel_scientist.records.kernel import COMPILED, EAGER, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.records.results import BarResult, PredictedResult
from kernel_scientist.records.suite_result import BaselineSpeedup, SuiteResult, SuiteRow, SuiteShares

progress = logging.getLogger("kernel_scientist.progress")
FAST = (0.0, 1.0, 1.5, 2.0)
"""Values p of fast_p: the share of problems with a correct kernel that is more than p times as fast."""
OWN = ("validate.torch_compile=true", "search.from=seeds")
"""Overrides of a suite: a second baseline, and nothing of earlier campaigns, so that two suites can be compared."""


@dataclass(frozen=True)
class Suite:
    """The problems of a suite and its folder."""

    name: str
    places: tuple[Path, ...]

    @staticmethod
    def of(name: str, paths: Sequence[str], level: int | None) -> "Suite":
        """Return the suite of the problems at and below some paths. Raises SetupError for none, or for its name.

        level: only problems in folders of the name `level<N>`, as in KernelBench.
        """
        campaign_process.folder("suite", name)
        places = [p for p in problems.below(paths) if level is None or f"level{level}" in p.parts]
        if not places:
            raise SetupError(f"no problem at or below {', '.join(paths)} is in a folder level{level}")
        if empty := next((p for p in places if p.is_file() and not p.read_bytes().strip()), None):
            raise SetupError(f"{empty} is empty: it is no problem")
        return Suite(name, tuple(places))

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return campaign_process.folder("suite", self.name)

    def begin(self) -> None:
        """Make the folder and the name by which the suite's campaigns are found again, unless they exist."""
        campaign_process.begin(self.folder)

    def folder_of(self, place: Path) -> Path:
        """Return the folder of one problem's result."""
        return folder_of(self.folder, place)

    def require_quiet(self, params: Params, jobs: int) -> None:
        """Raise SetupError if campaigns side by side would build while another times kernels on this CPU."""
        if jobs > 1 and addresses.resolve(params.target, params.language).builds_disturb:
            raise SetupError("builds of one campaign would disturb the timings of another on this CPU: use --jobs 1")

    def run(self, place: Path, overrides: Sequence[str], params_file: str | None, api: str | None = None) -> SuiteRow:
        """Run or resume one problem's campaign; return its row. A problem that cannot be used is a row too.

        api: address of the Prefect server; None: the campaign starts its own.
        """
        own = self.folder_of(place)
        file, metrics = own / "result.json", own / campaign_process.METRICS
        if (kept := _kept(file)) is not None:
            return kept
        named = (f"problem={place}", f"tracking.suite={campaign_process.tag(self.folder, own)}")
        stopping.check()  # before it says what it begins
        place_of = f"problem {self.places.index(place) + 1} of {len(self.places)}, {label(place)}"
        progress.info("%s: a campaign, whose log is %s", place_of, own / campaign_process.LOG)
        last = campaign_process.run(own, (*OWN, *overrides, *named), params_file, api)
        row = result_row(place, metrics, last)
        progress.info("%s: %s", place_of, row.reason or f"over the eager reference {row.over_eager}")
        if not metrics.exists() or not campaign_process.is_decided(_result(metrics)):
            return row  # the next call tries again
        environment.keep(file, row.model_dump_json(indent=1))
        return row


def _result(metrics: Path) -> CampaignResult:
    return CampaignResult.model_validate_json(metrics.read_text())


def _kept(file: Path) -> SuiteRow | None:
    """Return the row in a file; None if there is none, or one of another version of this program."""
    try:
        return SuiteRow.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def result_row(place: Path, metrics: Path, last: str) -> SuiteRow:
    """Return a problem's row from the result of its campaign; without one, `last`, its last line, is the reason."""
    problem = label(place)
    if not metrics.exists():
        return SuiteRow(problem=problem, reason=last[:500])
    found = _result(metrics)
    beside, correct = {bar.kernel: bar for bar in found.bars}, found.verdict is Verdict.OK
    if is_predicted := bool(correct and found.predicted and found.speedup is None):
        eager, compiled = (_predicted(beside.get(name), found.predicted) for name in (EAGER, COMPILED))
    else:
        eager, compiled = BaselineSpeedup(ratio=found.speedup, interval=found.interval), BaselineSpeedup()
        if bar := beside.get(COMPILED):
            compiled = BaselineSpeedup(ratio=bar.ratio, interval=bar.interval, remark=bar.reason)
    return SuiteRow(
        problem=problem,
        reason=found.why,
        correct=correct,
        times="predicted" if is_predicted else "measured",
        over_eager=eager,
        over_compiled=compiled,
        campaign=found.campaign,
        champion=found.champion,
        verdict=found.verdict,
        confirmed=found.confirmed,
        kernels=found.kernels,
        stopped=found.stopped,
        usd=found.usd,
        mlflow=found.mlflow,
    )


def _predicted(baseline: BarResult | None, champion: PredictedResult | None) -> BaselineSpeedup:
    """Return the quotient of two predicted times."""
    us = baseline.predicted_us if baseline else None
    ratio = us / champion.geomean_us if us and champion else None
    return BaselineSpeedup(ratio=ratio, remark=baseline.reason if baseline else "")


def summary(suite: str, rows: Sequence[SuiteRow]) -> SuiteResult:
    """Return the result of a suite from its rows."""
    return SuiteResult(
        suite=suite,
        problems=len(rows),
        refused=sum(row.campaign is None for row in rows),
        times=" and ".join(sorted({row.times for row in rows if row.times})),
        over_eager=_against(rows, [row.over_eager for row in rows]),
        over_compiled=_against(rows, [row.over_compiled for row in rows]),
        usd=sum(row.usd for row in rows),
        rows=tuple(rows),
    )


def _against(rows: Sequence[SuiteRow], compared: Sequence[BaselineSpeedup]) -> SuiteShares:
    """Return fast_p and geometric means over a baseline. compared: the speedup of each row over it."""
    found = [one for row, one in zip(rows, compared, strict=True) if row.correct]
    right = [one.ratio for one in found if one.ratio is not None]
    lows = [one.interval[0] for one in found if one.interval and one.ratio is not None]
    count = len(right) + sum(not row.correct for row in rows)
    faster = [ratio for ratio in right if ratio > 1]
    return SuiteShares(
        compared=count,
        fast_p={f"{p:g}": sum(ratio > p for ratio in right) / max(1, count) for p in FAST},
        fast_p_shown={f"{p:g}": sum(low > p for low in lows) / max(1, count) for p in FAST},
        geomean_correct=geomean(right) if right else None,
        geomean_faster=geomean(faster) if faster else None,
    )
