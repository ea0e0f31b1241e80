"""The laboratory's records: frozen, typed, JSON both ways (`model_dump_json`, `model_validate_json`)."""

import math

from pydantic import Field, model_validator

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.gpu import CodeObject, Counters, Launch, Prediction
from kernel_scientist.records.kernel import Kernel, Verdict

UNRESOLVED = (1e-9, 1e9)
"""The interval of a ratio when there are too few blocks to say anything at the asked confidence."""


class CompileReport(Record):
    """What the compiler said and what the object code tells."""

    ok: bool
    compiler: str
    seconds: Finite = 0.0
    cached: bool = False
    log: str = ""
    """The compiler's words, capped."""
    code_bytes: int | None = None
    instructions: dict[str, int] = Field(default_factory=dict)
    """Counts by class (zmm, ymm, xmm, fma, dot, branch, ...)."""
    objects: tuple[CodeObject, ...] = ()
    """A GPU's code objects."""
    launches: tuple[Launch, ...] = ()
    findings: tuple[str, ...] = ()
    """What is worth knowing of the code on its GPU: LDS over the limit, spills, another fp8 format, ..."""
    missed: tuple[str, ...] = ()
    """What could not be seen without a GPU, and why."""


class Timing(Record):
    """Measured times of one kernel on one case."""

    case: str
    time_us: Finite
    """Median over the timed calls."""
    interval_us: tuple[Finite, Finite]
    """95 % interval of that median."""
    floor_us: Finite | None = None
    """Roofline floor, predicted from the machine table."""
    samples_us: tuple[Finite, ...] = ()


class Clocks(Record):
    """What several clocks said of a kernel's calls of one case, in us per call (medians)."""

    case: str
    call_us: Finite
    """The time that is scored: the worker's system clock, or a GPU's events."""
    host_us: Finite
    """The worker's system clock, around the call and, on a GPU, the end of all it started."""
    counter_us: Finite | None = None
    """The processor's own counter."""
    wall_us: Finite
    """The verifier's clock, from the moment it lets the worker go to the moment the worker says that it is done."""
    outside_us: Finite
    """`wall_us` beyond `call_us`, at its best."""
    usual_outside_us: Finite
    """The same for a trusted contestant in the same run, median."""
    before_us: Finite = 0.0
    """The verifier's clock, from the moment it rouses the worker, inputs written, to that: median."""
    after_us: Finite = 0.0
    """The verifier's clock, from then to the answer with the output's digest, at its best."""
    usual_after_us: Finite = 0.0
    """The same for a trusted contestant in the same run."""
    cpu_us: Finite | None = None
    """CPU time of the worker from before it is roused until that answer, as the system told the verifier ..."""
    span_us: Finite = 0.0
    """... and the time between the system's two answers."""
    switches: int = 0
    """Involuntary context switches in all calls together."""
    slope_us: Finite | None = None
    """The verifier's clock: what one more call in a row costs."""
    slope_claimed_us: Finite | None = None
    """The worker's word for the same."""
    row_us: Finite | None = None
    """The worker's word for the best call of many in a row."""


class Speedup(Record):
    """Paired ratio of speeds in one interleaved run: above 1 means faster than `against`.

    A call counts as the root of the sum of squares of what it took and of `beside_us`.
    """

    against: str
    ratio: Finite
    interval: tuple[Finite, Finite]
    seen: tuple[Finite, Finite] | None = None
    """The interval of the ratio of all that passed by the verifier's own clock, on a CPU."""
    margin: Finite = 0.0
    """What the interval's lower bound must be above 1 by: the noise of this machine, from A/A runs."""
    looks: int = 1
    """How often the samples were looked at before it was decided; each look has workers of its own."""
    cases: dict[str, Finite] = Field(default_factory=dict)
    beside_us: dict[str, Finite] = Field(default_factory=dict)
    """What usually passes beside a call of a case, on a CPU; nobody can vouch for gains that are small beside it."""
    slower_cases: tuple[str, ...] = ()
    """Cases in which the whole interval lies below 1 - margin, `beside_us` left out of it."""

    @property
    def resolved(self) -> bool:
        """Whether there were enough blocks for an interval at the asked confidence."""
        return self.interval[1] < UNRESOLVED[1]

    @property
    def faster(self) -> bool:
        """Whether it is shown to be faster by more than the margin."""
        return self.above(self.margin)

    def above(self, margin: float) -> bool:
        """Whether the whole interval lies above 1 + margin, and by what the verifier saw above 1."""
        return self.interval[0] > 1 + margin and (self.seen is None or self.seen[0] > 1)


class Evaluation(Record):
    """What came of one kernel: compile report, verdict, timings."""

    verdict: Verdict
    reason: str = ""
    """One sentence; empty only when the verdict is `ok` and there is nothing to add."""
    compile: CompileReport | None = None
    timings: tuple[Timing, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    """What a machine model says, where nothing can be measured or before it is."""
    by_model: bool = False
    """The target is a model: predictions are all there is, and what kernels are ranked by."""
    held: bool = False
    """It was not executed, for others are predicted to be faster (`search.prescreen`): no score, and no failure."""
    coverage: str = ""
    """How much of the kernel an interpreted check executed, and how its memory was watched."""
    speedups: tuple[Speedup, ...] = ()
    clocks: tuple[Clocks, ...] = ()
    counters: tuple[Counters, ...] = ()
    """What the GPU's own counters say, where they could be read; `environment` says by what, or why not."""
    labels: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    sandbox: tuple[str, ...] = ()
    """Layers that were in force."""
    environment: dict[str, str] = Field(default_factory=dict)
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
        """Geometric mean of the cases' medians; none when nothing was timed."""
        return geomean([t.time_us for t in self.timings]) if self.timings else None

    @property
    def predicted_us(self) -> float | None:
        """Geometric mean of the predicted times; none when nothing was predicted."""
        return geomean([p.time_us for p in self.predictions]) if self.predictions else None

    def speedup_over(self, against: str) -> Speedup | None:
        """Return the paired comparison with `against`, if it was made."""
        return next((s for s in self.speedups if s.against == against), None)


class Trial(Record):
    """A kernel and what came of it: one MLflow run."""

    kernel: Kernel
    evaluation: Evaluation


def geomean(values: list[float]) -> float:
    """Return the geometric mean of positive values. Raises ValueError for none, or one that is not positive."""
    if not values or min(values) <= 0:
        raise ValueError(f"geometric mean of {values}: needs positive values")
    return math.exp(sum(map(math.log, values)) / len(values))
