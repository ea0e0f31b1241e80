"""Raw samples: the clock readings of one timing, and the plan of it. Every figure of the timing follows from them."""

import hashlib

from pydantic import TypeAdapter

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import Case, Work

RawRow = tuple[int, int, int, int, int, int, int]
"""One timed row: number of calls; ns from start barrier to completion signal by the evaluator's clock; then by the
worker's own readings ns of the calls, CPU time in ns, involuntary context switches, ns between two events of a GPU, ns
of the delay before them."""


class CaseSamples(Record):
    """The timed rows of one source on one case."""

    source: str
    """Name of the source."""
    case: str
    """Name of the case."""
    rows: tuple[tuple[tuple[RawRow, ...], ...], ...]
    """By process and block. Each process is a fresh one."""
    unqueued: tuple[RawRow, ...] = ()
    """Rows of the warm-up. They decide nothing."""


class RecordedProblem(Record):
    """What floors need of a problem."""

    digest: str
    """Digest of the files that define it."""
    works: dict[str, Work]
    """Least work by timed case."""

    @property
    def work_is_least(self) -> bool:
        """Whether a time below the floor accuses a kernel: nobody is accused by recorded samples."""
        return False

    def work(self, case: Case) -> Work:
        """Return the work of a case. Raises KeyError for one that was not timed."""
        return self.works[case.name]


class Bound(Record):
    """Rates that no kernel exceeds on the device, from which floors are computed."""

    name: str
    """Name of the device."""
    gflops: Finite
    """Arithmetic in GFLOP/s."""
    gbps: Finite
    """Memory in GB/s."""
    kept_bytes: int = 0
    """Bytes of a call that caches may keep."""


class RawSamples(Record):
    """All rows of one timing, and what else its figures are computed from."""

    evaluator: str
    """Digest of the code that determines verdicts and times."""
    problem: RecordedProblem
    """The problem, as far as floors need it."""
    candidate: str
    """Name of the kernel."""
    baseline: str | None
    """Name of the source that the kernel was tested against; None without a test."""
    finalists: tuple[str, ...] = ()
    """Names of sources whose own speedups over the reference are stated, too."""
    sources: dict[str, str]
    """Digest of every timed source by name, the candidate's first."""
    cases: tuple[Case, ...]
    """The timed cases."""
    bound: Bound | None
    """None for a GPU that is in no table: then there are no floors."""
    confidence: Finite
    """Confidence of the intervals of times."""
    ratio_confidence: Finite
    """Confidence of the intervals of ratios: the error probability is divided among the stages."""
    margins: tuple[Finite, ...]
    """Margin per stage."""
    drop_below: Finite
    """A candidate is dropped if the whole interval of its speed over the baseline is below this."""
    dropped_after: int
    """Blocks after which it was dropped; 0: it was not."""
    readings: tuple[CaseSamples, ...]
    """The rows, in the order in which sources and cases were first timed."""
    digest: str
    """sha256 of the readings: some of them change no figure."""


_READINGS = TypeAdapter(tuple[CaseSamples, ...])


def digest_of(readings: tuple[CaseSamples, ...]) -> str:
    """Return the sha256 of readings, in hexadecimal."""
    return hashlib.sha256(_READINGS.dump_json(readings)).hexdigest()
