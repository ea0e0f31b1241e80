"""Records of a kernel's evaluation: frozen, typed, converted to and from JSON."""

import math
from typing import Any, cast

from pydantic import Field, model_validator

from kernel_scientist.records import factors
from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.gpu import CodeObject, Counters, Launch, Prediction
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.raw_samples import RawSamples
from kernel_scientist.records.sampled import Sampled

CONFIRMED, CORRECT, NOT_CONFIRMED = "confirmed", "correct", "not confirmed"
"""What a confirmation comes to. `correct`: there was nothing to be faster than, as for a seed that no experiment
beat."""
MACHINE = ("machine", "gpu", "cores", "threads", "compiler", "torch", "system")
"""Fields of an evaluation's environment that name the machine, in the order in which they are shown."""
COUNTERS = "counters"
"""Key in an evaluation's environment: the profiler, or the reason why nothing was counted or sampled."""
UNPREVIEWED = "it could not be previewed: "
"""Beginning of evidence on the calls of a preview, which are of the timed cases."""


class CompileReport(Record):
    """The compiler's log, and facts from the object code."""

    ok: bool
    """Whether it compiled."""
    compiler: str
    """Compiler and version."""
    seconds: Finite = 0.0
    """Wall time of the compilation."""
    cached: bool = False
    """Whether an earlier compilation of the same source was used."""
    log: str = ""
    """The compiler's messages, truncated."""
    code_bytes: int | None = None
    """Size of the machine code."""
    instructions: dict[str, int] = Field(default_factory=dict)
    """Counts by class (zmm, ymm, xmm, tile product, fma, dot, vector spill, branch, ...)."""
    hot_loop: str = ""
    """Machine code of a CPU kernel's innermost loop with the most vector work, one instruction per line."""
    objects: tuple[CodeObject, ...] = ()
    """Code objects of a GPU kernel."""
    launches: tuple[Launch, ...] = ()
    """Launches of the GPU kernels, per case."""
    findings: tuple[str, ...] = ()
    """Remarks on the code for its GPU: LDS over the limit, spills, an unsuitable fp8 format, ..."""
    missed: tuple[str, ...] = ()
    """What could not be inspected without a GPU, with the reasons."""


class Timing(Record):
    """Measured times of one kernel on one case. A time is per call, in microseconds."""

    case: str
    """Name of the case."""
    time_us: Finite
    """Interquartile geometric mean over the blocks: host wall time on a CPU, events on a GPU."""
    interval_us: tuple[Finite, Finite]
    """95 % interval of that time."""
    floor_us: Finite | None = None
    """Roofline floor, predicted from the machine table."""
    samples_us: tuple[Finite, ...] = ()
    """One per timed row of calls."""


class Clocks(Record):
    """Diagnostics of the timed rows of one case, without effect on results. Times are medians per call."""

    case: str
    """Name of the case."""
    host_us: Finite
    """The evaluator's clock, from the start barrier to the completion signal."""
    worker_us: Finite
    """The worker's own clock around the same calls."""
    event_us: Finite | None = None
    """Device time: between two events on a GPU's default stream, the calls queued behind a delay."""
    idle_to_idle_us: Finite | None = None
    """Between two events from an idle device to an idle device, before the rows that count: it contains the launch."""
    cpu_us: Finite | None = None
    """CPU time of the worker's process, as the worker reports it."""
    calls_per_row: int = 1
    """Calls between start barrier and completion signal."""
    switches: int = 0
    """Involuntary context switches in all rows together."""


class PairedTime(Record):
    """Times of a kernel and of the other source on one case, in the same interleaved run."""

    time_us: Finite
    """The kernel's time per call."""
    against_us: Finite
    """The other source's time per call."""
    interval: tuple[Finite, Finite] | None = None
    """Interval of their quotient, the margin included; None with too few blocks, and in older records."""

    @property
    def ratio(self) -> float:
        """How many times faster the kernel was on this case."""
        return self.against_us / self.time_us


class Speedup(Record):
    """How many times faster a kernel was than `against`: above 1 means faster."""

    against: str
    """Name of the other source: a kernel or `reference`."""
    ratio: Finite
    """Geometric mean over the cases of `against_us` / `time_us`."""
    interval: tuple[Finite, Finite]
    """Interval at the confidence of the stage at which the timing stopped, the margin included. Of a kernel that was
    dropped, over the one that it was tested against: that of its rows, which decided."""
    margin: Finite = 0.0
    """By how much the intervals are wider at either end than the spread of the samples makes them: the larger of
    `harness.margin` and the A/A noise, what equal kernels differ by."""
    has_margin: bool = False
    """Whether the intervals contain the margin. Those of older records do not, and are widened when they are read."""
    stages: int = 1
    """Stages of the group-sequential test that were run; each has worker processes of its own."""
    cases: dict[str, PairedTime] = Field(default_factory=dict[str, PairedTime])
    """Both times, by case."""
    slower_cases: tuple[str, ...] = ()
    """Names of cases whose whole interval lies below 1."""
    dropped: str = ""
    """Why the timing ended after a few blocks; empty if it did not."""

    @model_validator(mode="before")
    @classmethod
    def _contains_its_margin(cls, values: Any) -> Any:
        """Widen the intervals of an older record by its margin, so that one rule says what is faster."""
        if not isinstance(values, dict) or values.get("has_margin"):
            return values
        given = cast(dict[str, Any], values)
        factor = 1 + float(given.get("margin") or 0.0)
        cases = {case: _widened(dict(pair), factor) for case, pair in (given.get("cases") or {}).items()}
        return {**_widened(given, factor), "cases": cases, "has_margin": True}

    @model_validator(mode="after")
    def _ratio_is_the_quotient(self) -> "Speedup":
        if self.cases:
            quotient = geomean([times.ratio for times in self.cases.values()])
            if not math.isclose(self.ratio, quotient, rel_tol=1e-6):
                raise ValueError(f"ratio {self.ratio}, but the times beside it give {quotient}")
        return self

    @property
    def time_us(self) -> float:
        """Return the geometric mean over the cases of the kernel's times. Raises ValueError without cases."""
        return geomean([times.time_us for times in self.cases.values()])

    @property
    def against_us(self) -> float:
        """Return the geometric mean over the cases of the other source's times. Raises ValueError without cases."""
        return geomean([times.against_us for times in self.cases.values()])

    @property
    def known(self) -> bool:
        """Whether there were enough blocks for an interval at the requested confidence."""
        return factors.is_known(self.interval)

    @property
    def resolved(self) -> bool:
        """Whether the interval supports stating the ratio (`records.factors`)."""
        return factors.is_resolved(self.interval)

    def __str__(self) -> str:
        return factors.factor(self.ratio, self.interval, self.dropped)

    @property
    def faster(self) -> bool:
        """Whether the kernel was found faster: its whole interval lies above 1."""
        return self.interval[0] > 1


def _widened(values: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return a record's fields with its interval wider by a factor at either end, if there is one."""
    known = values.get("interval")
    if known is None or not factors.is_known(known):
        return values
    return {**values, "interval": (known[0] / factor, known[1] * factor)}


class Evaluation(Record):
    """Result of evaluating one kernel: compile report, verdict, timings."""

    verdict: Verdict
    """The verdict."""
    reason: str = ""
    """One sentence; empty only when the verdict is `ok` and there is nothing to add."""
    compile: CompileReport | None = None
    """Compile report; None if nothing was compiled."""
    timings: tuple[Timing, ...] = ()
    """The kernel's own times, per case."""
    predictions: tuple[Prediction, ...] = ()
    """Predictions of the performance model, per case."""
    by_model: bool = False
    """Whether the target is a model, so that kernels are ranked by predictions."""
    skipped: bool = False
    """Whether the kernel was not executed because others are predicted to be faster (`search.prescreen`)."""
    coverage: str = ""
    """Without a GPU: how much of the kernel was executed and checked."""
    failed_untimed: bool = False
    """Whether it failed where no timed case took part: before any call, or on a checking case of other sizes."""
    speedups: tuple[Speedup, ...] = ()
    """Comparisons with the sources that were timed beside it."""
    baseline: str = ""
    """Name of the source that the test compared it with: the incumbent of that moment, or the reference. Empty without
    a test; in older records it is the last of `speedups`."""
    beside: dict[str, Speedup] = Field(default_factory=dict[str, Speedup])
    """In a final: the speedups over the reference of the other finalists, by name."""
    samples: RawSamples | None = None
    """The readings that times and speedups are computed from; an artifact of its own, which is not read back."""
    clocks: tuple[Clocks, ...] = ()
    """Diagnostics of the timing, per case."""
    counters: tuple[Counters, ...] = ()
    """Hardware counters of the GPU; `environment` names the tool, or the reason why there are none."""
    sampled: tuple[Sampled, ...] = ()
    """Samples of calls on a CPU, if they were asked for; no campaign records any."""
    labels: tuple[str, ...] = ()
    """Remarks `SEVERITY:NAME` of the screen of the source, and `measured:NAME` of what calls did."""
    evidence: tuple[str, ...] = ()
    """What the labels rest on, such as a line of the source."""
    sandbox: tuple[str, ...] = ()
    """Active layers of the sandbox."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Machine, load, versions and settings of the measurement, by name."""
    seconds: dict[str, Finite] = Field(default_factory=dict)
    """Wall time per step."""

    @model_validator(mode="after")
    def _consistent(self) -> "Evaluation":
        if self.verdict is not Verdict.OK:
            if self.timings or self.speedups:
                raise ValueError(f"verdict {self.verdict.value} with timings: only an ok kernel has a time")
            if not self.reason:
                raise ValueError(f"verdict {self.verdict.value} without a reason")
        return self

    @property
    def geomean_us(self) -> float | None:
        """Geometric mean of the times over the cases; None if nothing was timed."""
        return geomean([t.time_us for t in self.timings]) if self.timings else None

    @property
    def times_us(self) -> dict[str, float]:
        """Time of each case: measured, or predicted if the evaluation is by a model."""
        return {one.case: one.time_us for one in (self.predictions if self.by_model else self.timings)}

    @property
    def predicted_us(self) -> float | None:
        """Geometric mean of the predicted times; None if nothing was predicted."""
        return geomean([p.time_us for p in self.predictions]) if self.predictions else None

    def speedup_over(self, against: str | None) -> Speedup | None:
        """Return the paired comparison with `against`, if it was made."""
        return next((s for s in self.speedups if s.against == against), None)

    @property
    def test(self) -> Speedup | None:
        """The comparison that decided whether the kernel replaces the incumbent; None if it was not timed."""
        return self.speedup_over(self.baseline) or next(reversed(self.speedups), None)

    @property
    def machine(self) -> str:
        """What names the machine that it was evaluated on."""
        units = {name: f" {name}" for name in ("cores", "threads")}
        known = self.environment
        return ", ".join(f"{known[name]}{units.get(name, '')}" for name in MACHINE if name in known)

    @property
    def busy(self) -> str:
        """A sentence if it was measured on a busy machine, else empty."""
        return factors.busy(self.environment)


class Trial(Record):
    """A kernel and its evaluation: one MLflow run."""

    kernel: Kernel
    """The kernel."""
    evaluation: Evaluation
    """Its evaluation."""


class Bar(Record):
    """Another's kernel beside a champion. Its measured times are in the confirmation's speedups over its name."""

    name: str
    """Name of the kernel."""
    verdict: Verdict | None
    """None: it was not evaluated, because this target does not time its language."""
    reason: str = ""
    """The verdict in a sentence."""
    predicted_us: Finite | None = None
    """On a model target: geometric mean over the cases of the predicted times."""


class Confirmation(Record):
    """Result of a confirmation. `evaluation` holds the published figures, which are on the public cases."""

    confirmed: bool
    """Whether the kernel passed: correct on every case, and faster than `baseline` if there is one."""
    reason: str
    """Why, in a sentence."""
    evaluation: Evaluation
    """Evaluation on the public cases."""
    held_out: tuple[Timing, ...] = ()
    """Times on the held-out cases."""
    held_out_speedups: tuple[Speedup, ...] = ()
    """Comparisons on the held-out cases."""
    held_out_samples: RawSamples | None = None
    """The readings that these are computed from."""
    bars: tuple[Bar, ...] = ()
    """Others' kernels that the champion was to be timed beside, also those that failed."""
    baseline: str = ""
    """Name of the source that it had to be faster than; empty: it had only to be correct, such as a seed that stays."""

    @staticmethod
    def of_failure(evaluation: Evaluation) -> "Confirmation":
        """Return the confirmation of a kernel that failed."""
        reason = evaluation.verdict.because(evaluation.reason)
        return Confirmation(confirmed=False, reason=reason, evaluation=evaluation)

    @property
    def status(self) -> str:
        """Return `confirmed`, `correct` if there was nothing to be faster than, or `not confirmed`."""
        return NOT_CONFIRMED if not self.confirmed else CONFIRMED if self.baseline else CORRECT


def geomean(values: list[float]) -> float:
    """Return the geometric mean. Raises ValueError if there are no values or one is not positive."""
    if not values or min(values) <= 0:
        raise ValueError(f"geometric mean of {values}: needs positive values")
    return math.exp(sum(map(math.log, values)) / len(values))
