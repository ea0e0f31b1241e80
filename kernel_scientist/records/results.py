"""What the use cases return: the results of `evaluate` and `validate`, as programs and people read them.

Their JSON is what `--json` prints. Times are rounded to six significant digits, and every ratio is the geometric mean
over the cases of the quotient of the two times printed with it.
"""

from kernel_scientist.records import factors
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.evaluation import Clocks, CompileReport
from kernel_scientist.records.gpu import Counters, Figures
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.sampled import Sampled
from kernel_scientist.records.source_line import SourceLine

Interval = tuple[Finite, Finite]


class CaseResult(Record):
    """A kernel's time on one case. Times are per call, in us."""

    case: str
    """Name of the case."""
    time_us: Finite
    """The kernel's time."""
    interval_us: Interval
    """95 % interval of that time."""
    floor_us: Finite | None = None
    """Roofline floor, predicted from the machine table."""
    against_us: Finite | None = None
    """The other source's time in the same run; None if it was not timed on this case."""
    ratio_interval: Interval | None = None
    """Interval of the quotient of the two."""


class PairResult(Record):
    """Times of a kernel and of another source on one case, in us per call, in one run."""

    case: str
    """Name of the case."""
    time_us: Finite
    """The kernel's time."""
    against_us: Finite
    """The other source's time."""
    interval: Interval | None = None
    """Interval of their quotient; None with too few blocks."""


class SpeedupResult(Record):
    """How many times as fast a kernel was as another source."""

    against: str
    """Name of the other source."""
    ratio: Finite
    """Above 1: the kernel is faster."""
    interval: Interval | None
    """Its interval; None with too few blocks for one."""
    interval_why: str
    """Why there is no interval; empty if there is one."""
    margin: Finite
    """What equal kernels differ by: the interval is wider by it at either end than the spread of the samples says."""
    stages: int
    """Stages of the group-sequential test that were run."""
    slower_cases: tuple[str, ...]
    """Cases whose whole interval lies below 1."""
    dropped: str
    """Why the timing ended after a few blocks; empty if it did not."""
    resolved: bool
    """Whether the interval supports stating the ratio."""
    faster: bool
    """Whether the test found the kernel faster."""
    cases: tuple[PairResult, ...]
    """Both times, by case."""

    def __str__(self) -> str:
        return factors.factor(self.ratio, self.interval, self.interval_why)


class PredictedCase(Record):
    """A performance model's prediction for one case, in us."""

    case: str
    """Name of the case."""
    time_us: Finite
    """With the launches."""
    launch_us: Finite
    """The part of it that a profiler's kernel time does not contain."""
    floor_us: Finite
    """Roofline floor on that machine."""
    limited_by: str
    """The resource that takes longest."""
    breakdown_us: dict[str, Finite]
    """Time that each resource alone would take."""
    words: tuple[str, ...]
    """What that means for a designer."""
    lines: tuple[SourceLine, ...]
    """Where a program of the longest launch spends its time."""
    published_us: Finite | None
    """The best published time of the case on that GPU; None if none is known."""
    published: str
    """Where that comes from."""


class PredictedResult(Record):
    """A performance model's predictions. Never a measurement."""

    machine: str
    """Name of the GPU."""
    calibration: str
    """By what the model's constants were calibrated."""
    calibrated: str | None
    """Device or data set, and date, of that calibration."""
    by: str
    """Model and calibration in words."""
    geomean_us: Finite
    """Geometric mean over the cases."""
    roofline_fraction: Finite
    """Geometric mean over the cases of floor / time."""
    cases: tuple[PredictedCase, ...]
    """By case."""
    coverage: str
    """How much of the kernel was executed and checked."""


class CountersResult(Record):
    """Hardware counters of a GPU."""

    by: str
    """The tool that read them."""
    total: Figures
    """Of all kernels together."""
    kernels: tuple[Counters, ...]
    """By kernel and case."""


class EvaluationResult(Record):
    """The result of `evaluate`."""

    problem: str
    """Name of the problem."""
    target: str
    """Name of the resolved target."""
    verdict: Verdict
    """The verdict."""
    reason: str
    """The verdict in a sentence; empty if there is nothing to add."""
    coverage: str
    """Without a GPU: how much of the kernel was executed and checked."""
    labels: tuple[str, ...]
    """Remarks of the screen of the source and of what calls did."""
    evidence: tuple[str, ...]
    """What labels and verdict rest on."""
    sandbox: tuple[str, ...]
    """Active layers of the sandbox."""
    clocks: tuple[Clocks, ...]
    """Diagnostics of the timing, by case."""
    environment: dict[str, str]
    """Machine, load, versions and settings."""
    seconds: dict[str, Finite]
    """Wall time by step."""
    geomean_us: Finite | None
    """Geometric mean over the cases of the kernel's measured times; None if nothing was timed."""
    cases: tuple[CaseResult, ...]
    """Measured times by case."""
    speedup: SpeedupResult | None
    """Over the reference, or over the source that was named; None if nothing was timed."""
    predicted: PredictedResult | None
    """Predicted times; None without a model of the GPU."""
    counters: CountersResult | None
    """Hardware counters; None if they were not read."""
    compile: CompileReport | None
    """Compile report, without the log; None if nothing was compiled."""
    sampled: tuple[Sampled, ...] = ()
    """Of `profile` on a CPU: samples of the kernel's calls by source line."""


class BesideResult(Record):
    """Times of a champion and of another source, in us, and their ratio, each of one run; None if not timed."""

    us: Finite | None
    """The other source's on public cases."""
    champion_us: Finite | None
    """The champion's in the same run."""
    ratio: Finite | None
    """How many times as fast the champion is."""
    interval: Interval | None
    """Its interval."""
    interval_why: str
    """Why there is none; empty if there is one."""
    held_out_us: Finite | None
    """The other source's on held-out cases."""
    held_out_ratio: Finite | None
    """How many times as fast the champion is there."""
    held_out_interval: Interval | None
    """Its interval."""


class BarResult(BesideResult):
    """What stands beside a champion: a kernel of others, or torch.compile."""

    kernel: str
    """Its name."""
    verdict: str
    """Its verdict, or `not evaluated`."""
    reason: str
    """The verdict in a sentence."""
    predicted_us: Finite | None
    """On a model target its predicted time."""


class HeldOutResult(Record):
    """Times of a confirmed kernel on held-out cases."""

    cases: tuple[CaseResult, ...]
    """By case."""
    speedups: tuple[SpeedupResult, ...]
    """Over the sources that were timed beside it."""


class ValidationResult(EvaluationResult):
    """The result of `validate`: an evaluation on the public cases, and whether the kernel is confirmed."""

    status: str
    """`confirmed`, `correct` if there was nothing to be faster than, or `not confirmed`."""
    confirmed: bool
    """Whether it was found faster than what it had to beat."""
    why: str
    """The status in a sentence."""
    kernel: str
    """Name of the kernel."""
    digest: str
    """Digest of its source."""
    speedups: tuple[SpeedupResult, ...]
    """Over all sources that were timed beside it on public cases."""
    held_out: HeldOutResult
    """The same on held-out cases."""
    bars: tuple[BarResult, ...]
    """What else stands beside it."""
    recorded: str = ""
    """The campaign that recorded this result; empty if it is new."""
    key: str = ""
    """Digest of all that a recorded result depends on; empty on one that is not recorded beside a champion."""

    @property
    def told(self) -> str:
        """What the confirmation came to, and why."""
        return status_text(self.status, self.why)

    @property
    def is_only_predicted(self) -> bool:
        """Whether the kernel is right, and its time is predicted, not measured: nothing is decided by that."""
        return self.verdict == "ok" and self.predicted is not None and self.geomean_us is None

    def over(self, name: str) -> SpeedupResult | None:
        """Return the speedup over a source on public cases; None if it was not timed."""
        return next((one for one in self.speedups if one.against == name), None)

    def held_out_over(self, name: str) -> SpeedupResult | None:
        """Return the speedup over a source on held-out cases; None if it was not timed."""
        return next((one for one in self.held_out.speedups if one.against == name), None)


def status_text(status: str, why: str) -> str:
    """Return a status with its reason, as in `confirmed: faster than k00002 on public cases`."""
    return why if why.startswith(status) else f"{status}: {why}"
