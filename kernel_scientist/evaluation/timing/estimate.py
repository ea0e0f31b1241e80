"""From timed rows to results: times by source, case, process and block, intervals, speedups, and the floor of times."""

import math
import statistics as stats
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kernel_scientist.evaluation.timing import statistics
from kernel_scientist.evaluation.timing.plan import TimingPlan
from kernel_scientist.evaluation.timing.statistics import Blocks
from kernel_scientist.hardware.peaks import Machine, floor_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Clocks, Evaluation, PairedTime, Speedup, Timing
from kernel_scientist.records.kernel import REFERENCE, Case
from kernel_scientist.records.raw_samples import RecordedProblem
from kernel_scientist.workers.client import Row

LEAST_SHARE = 0.1
"""Least share of a row's host wall time that remains after the overhead is subtracted."""
EVENT_SLACK_NS = 1000
"""Nanoseconds by which host time may exceed the GPU's event time, beyond the trusted range, without a correction."""
FLOOR_SLACK = 1.05
"""Tolerance below the floor: the uncertainty of clocks and of the evaluator's own."""


@dataclass
class Samples:
    """Timed rows of calls. `process` numbers the stages: each stage has a fresh worker per source."""

    rows: dict[tuple[str, str], list[list[list[Row]]]] = field(
        default_factory=dict[tuple[str, str], list[list[list[Row]]]]
    )
    """Rows by (source, case), nested as processes, blocks, rows."""
    unqueued: dict[tuple[str, str], list[Row]] = field(default_factory=dict[tuple[str, str], list[Row]])
    """Rows of the warm-up, from an idle device to an idle device on a GPU: they decide nothing."""

    dropped_after: int = 0
    """Blocks after which the candidate was dropped, because it is so much slower; 0: it was not."""
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """Digest of each source by name."""

    def add(self, name: str, case: str, process: int, block: int, row: Row) -> None:
        """Record one timed row."""
        processes = self.rows.setdefault((name, case), [])
        while len(processes) <= process:
            processes.append([])
        while len(processes[process]) <= block:
            processes[process].append([])
        processes[process][block].append(row)

    def add_unqueued(self, name: str, case: str, row: Row) -> None:
        """Record one row of the warm-up."""
        self.unqueued.setdefault((name, case), []).append(row)

    @property
    def stages(self) -> int:
        """How many sets of workers were timed."""
        return max((len(processes) for processes in self.rows.values()), default=0)

    @property
    def cases(self) -> list[str]:
        """The cases' names in order."""
        return list(dict.fromkeys(case for _, case in self.rows))

    def rows_of(self, name: str, case: str) -> list[Row]:
        """Return a source's rows on one case."""
        return _flat(self.rows[name, case])

    def times_us(self, name: str, case: str) -> list[float]:
        """Return microseconds per call, one number per row."""
        clock = self._clock(case)
        return [clock.call_us(row) for row in self.rows_of(name, case)]

    def by_row(self, name: str, against: str) -> statistics.Estimate:
        """Return the ratio of two sources if each row counts for itself: two blocks are too few for an interval, their
        four rows are enough."""
        ours, theirs = ([[self.times_us(one, case)] for case in self.cases] for one in (name, against))
        return statistics.ratio(ours, theirs)

    def works_on(self, name: str, case: str) -> bool:
        """Whether the device is usually busy for longer than the events of a source's rows show: on another stream."""
        clock = self._clock(case).gpu
        return (
            clock is not None and clock.by_events and stats.median(map(clock.beyond_ns, self.rows_of(name, case))) > 0
        )

    def blocks_us(self, name: str, case: str, stages: int | None = None) -> Blocks:
        """Return microseconds per call of each block's quickest row, by process (interruptions only add time)."""
        clock = self._clock(case)
        processes = self.rows[name, case][:stages]
        return [[min(map(clock.call_us, block)) for block in process] for process in processes]

    def table(self, name: str, stages: int | None = None) -> list[Blocks]:
        """Return the blocks of all cases, in order."""
        return [self.blocks_us(name, case, stages) for case in self.cases]

    def trusted(self, candidate: str) -> str:
        """Return the trusted source: the reference, else the last one except the candidate."""
        names = list(dict.fromkeys(name for name, _ in self.rows))
        return REFERENCE if REFERENCE in names else next((n for n in reversed(names) if n != candidate), candidate)

    def _clock(self, case: str) -> "_Clock":
        return _Clock.of(self.rows_of(self.trusted(""), case))

    @staticmethod
    def joined(parts: Sequence["Samples"]) -> "Samples":
        """Return the processes of several runs, one after the other."""
        total = Samples()
        for part in parts:
            for key, processes in part.rows.items():
                total.rows.setdefault(key, []).extend(processes)
            for key, rows in part.unqueued.items():
                total.unqueued.setdefault(key, []).extend(rows)
            total.sources |= part.sources
        return total


def _flat(processes: Sequence[Sequence[Sequence[Row]]]) -> list[Row]:
    return [row for process in processes for block in process for row in block]


class _Clock(NamedTuple):
    """Conversion of a row's clock readings to time per call, on one case. All rows of a case use the same clock.

    A worker's readings are its own word: the evaluator's clock, and what is usual of a trusted worker, bound each.
    """

    overhead_ns: float
    """Of the evaluator's clock over the worker's in a trusted worker's rows: two signals between processes."""
    gpu: "_GpuClock | None"

    @staticmethod
    def of(rows: Sequence[Row]) -> "_Clock":
        """Return the conversion calibrated with the rows of a trusted worker."""
        overhead = stats.median(row.wall_ns - row.reading.ns for row in rows)
        on_gpu = any(row.reading.ahead_ns or row.reading.event_ns for row in rows)
        return _Clock(max(overhead, 0), _GpuClock.of(rows, overhead) if on_gpu else None)

    def call_us(self, row: Row) -> float:
        """Return microseconds per call: on a CPU host wall time minus overhead, on a GPU that of `_GpuClock`.

        A row's own overhead may be less than what is usual, which on a busy machine is a millisecond: then it counts.
        """
        if self.gpu is not None:
            ns = self.gpu.row_ns(row)
        else:
            own_ns = max(row.wall_ns - row.reading.ns, 0)
            ns = max(row.wall_ns - min(self.overhead_ns, own_ns), LEAST_SHARE * row.wall_ns)
        return ns / row.calls / 1000


class _GpuClock(NamedTuple):
    """The clock for a case's rows on a GPU."""

    overhead_ns: float
    """As in `_Clock`."""
    ahead: "_Usual"
    """The delay."""
    excess: "tuple[_Usual, _Usual]"
    """The host's time over the GPU's: by the worker's clock, by the evaluator's."""
    by_events: bool
    """Whether the trusted worker's events are usable. ROCm's may be zero for very short spans."""

    @staticmethod
    def of(rows: Sequence[Row], overhead_ns: float) -> "_GpuClock":
        """Return the clock calibrated with the rows of a trusted worker."""
        own, evaluators = zip(*map(_excess_ns, rows), strict=True)
        ahead = _Usual.of([row.reading.ahead_ns for row in rows])
        by_events = all(row.reading.event_ns for row in rows)
        return _GpuClock(overhead_ns, ahead, (_Usual.of(own), _Usual.of(evaluators)), by_events)

    def row_ns(self, row: Row) -> float:
        """Return the time of a row's calls: that between the events, and what `beyond_ns` adds.

        The events' time begins behind a delay, so it contains no launch that is shorter than the delay. Where the
        events show nothing it is the host's time after the delay, launch included.
        """
        if self.by_events:
            return max(row.reading.event_ns + self.beyond_ns(row), 1.0)
        host = max(row.reading.ns, row.wall_ns - self.overhead_ns)
        return max(host - min(row.reading.ahead_ns, self.ahead.fence), 1.0)

    def beyond_ns(self, row: Row) -> float:
        """Return the host's time beyond delay and events, less what is usual; 0 if it may be honest.

        Work on another stream may end after the last event, but before the device is idle.
        """
        reading = row.reading
        shown = min(reading.ahead_ns, self.ahead.fence) + reading.event_ns
        found = zip((reading.ns - shown, row.wall_ns - shown), self.excess, strict=True)
        return max(usual.beyond(value) if reading.event_ns else value - usual.median for value, usual in found)


def _excess_ns(row: Row) -> tuple[int, int]:
    """Return the host's time of a row beyond what the GPU's events show, by the worker's and the evaluator's clock."""
    shown = row.reading.ahead_ns + row.reading.event_ns
    return row.reading.ns - shown, row.wall_ns - shown


class _Usual(NamedTuple):
    """What is usual of a quantity that is never less than it should be, in nanoseconds."""

    median: float
    fence: float
    """Tukey's: hardly an honest value is greater."""

    @staticmethod
    def of(values: Sequence[float]) -> "_Usual":
        """Return what is usual of some values."""
        low, middle, high = stats.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
        return _Usual(middle, high + 1.5 * (high - low) + EVENT_SLACK_NS)

    def beyond(self, value: float) -> float:
        """Return by how much a value is more than usual; 0 for one that may be honest."""
        return value - self.median if value > self.fence else 0.0


@dataclass(frozen=True)
class Estimator:
    """Computes the results of a timing from its samples."""

    problem: Problem | RecordedProblem
    machine: Machine | None
    """Peaks of the device; None for a GPU without an entry in the tables."""
    confidence: float

    def result(
        self,
        evaluation: Evaluation,
        plan: TimingPlan,
        samples: Samples,
        others: Sequence[str],
        finalists: Sequence[str] = (),
    ) -> Evaluation:
        """Return the evaluation with times and speedups.

        `finalists`: those of `others` whose own speedups over the reference are stated, too.

        A time below the floor that accuses nobody (`accuses`) is a label: a better algorithm may do less work.
        """
        timings = tuple(self.timing(samples, plan.candidate, case) for case in plan.cases)
        below = _below(timings)
        speedups = tuple(self.speedup(samples, plan, other) for other in others)
        slower = [case for s in speedups if s.against == plan.baseline for case in s.slower_cases]
        labels = (*evaluation.labels, *(f"measured:slower-case:{case}" for case in slower))
        labels = (*labels, *(f"measured:less-than-the-references-work:{timing.case}" for timing in below))
        hidden = (case.name for case in plan.cases if samples.works_on(plan.candidate, case.name))
        labels = (*labels, *(f"measured:works-on-after-its-last-event:{case}" for case in hidden))
        beside = {name: self.speedup(samples, replace(plan, candidate=name), REFERENCE) for name in finalists}
        clocks = tuple(_clocks(samples, plan.candidate, case.name) for case in plan.cases)
        return evaluation.model_copy(
            update={
                "timings": timings,
                "speedups": speedups,
                "beside": beside,
                "baseline": plan.baseline or "",
                "labels": labels,
                "clocks": clocks,
            }
        )

    @property
    def accuses(self) -> bool:
        """Whether a time below the floor is impossible: the work is a least one, and the machine's bound is certain."""
        return self.problem.work_is_least and self.machine is not None and self.machine.certain

    def impossible(self, plan: TimingPlan, samples: Samples) -> tuple[Timing, ...]:
        """Return the times of the candidate that no machine of this kind can reach."""
        if not self.accuses:
            return ()
        return _below(tuple(self.timing(samples, plan.candidate, case) for case in plan.cases))

    def timing(self, samples: Samples, name: str, case: Case) -> Timing:
        """Return one source's time on a case."""
        estimate = statistics.time(samples.blocks_us(name, case.name))
        values = samples.times_us(name, case.name)
        resolved = estimate.blocks >= statistics.LEAST_BLOCKS
        return Timing(
            case=case.name,
            time_us=math.exp(estimate.log),
            interval_us=estimate.interval(self.confidence) if resolved else (min(values), max(values)),
            floor_us=floor_us(self.problem.work(case), self.machine) if self.machine else None,
            samples_us=tuple(values),
        )

    def speedup(self, samples: Samples, plan: TimingPlan, against: str) -> Speedup:
        """Return how many times faster the candidate was than `against` in the same blocks.

        Of a dropped candidate over the baseline the interval is the one that decided.
        """
        name, margin = plan.candidate, plan.margin(samples.stages)
        estimate = statistics.ratio(samples.table(name), samples.table(against))
        decided = samples.dropped_after and against == plan.baseline
        pairs: dict[str, PairedTime] = {}
        slower: list[str] = []
        for case in (case.name for case in plan.cases):
            ours, theirs = samples.blocks_us(name, case), samples.blocks_us(against, case)
            time_us, against_us = (math.exp(statistics.time(blocks).log) for blocks in (ours, theirs))
            found = statistics.ratio([ours], [theirs]).interval(plan.confidence, margin)
            known = found if factors.is_known(found) else None
            pairs[case] = PairedTime(time_us=time_us, against_us=against_us, interval=known)
            slower += [case] if found[1] < 1 else []
        return Speedup(
            against=against,
            ratio=math.exp(estimate.log),
            interval=(samples.by_row(name, against) if decided else estimate).interval(plan.confidence, margin),
            margin=margin,
            has_margin=True,
            stages=samples.stages,
            cases=pairs,
            slower_cases=tuple(slower),
            dropped=factors.dropped(samples.dropped_after, plan.baseline, plan.drop_below) if plan.baseline else "",
        )


def _below(timings: Sequence[Timing]) -> tuple[Timing, ...]:
    return tuple(t for t in timings if t.floor_us is not None and t.time_us * FLOOR_SLACK < t.floor_us)


def _clocks(samples: Samples, name: str, case: str) -> Clocks:
    rows = samples.rows_of(name, case)
    event_us = stats.median(row.reading.event_ns / row.calls for row in rows) / 1000
    idle = [row.reading.event_ns / 1000 for row in samples.unqueued.get((name, case), ()) if row.reading.event_ns]
    return Clocks(
        case=case,
        host_us=stats.median(row.wall_ns / row.calls for row in rows) / 1000,
        worker_us=stats.median(row.reading.ns / row.calls for row in rows) / 1000,
        event_us=event_us or None,
        idle_to_idle_us=stats.median(idle) if idle else None,
        cpu_us=stats.median(row.reading.cpu_ns / row.calls for row in rows) / 1000,
        calls_per_row=round(stats.median(row.calls for row in rows)),
        switches=sum(row.reading.switches for row in rows),
    )
