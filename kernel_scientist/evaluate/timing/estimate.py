"""From samples to results: times with intervals, speedups, and the floor that no time may lie below."""

import math
import statistics as stats
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.evaluate.timing import statistics
from kernel_scientist.evaluate.timing.plan import Plan
from kernel_scientist.evaluate.timing.samples import Samples
from kernel_scientist.hardware.peaks import Machine, floor_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import Clocks, Evaluation, PairedTime, Speedup, Timing
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure

FLOOR_SLACK = 1.05
"""Tolerance below the roofline floor: the uncertainty of the peaks from which the floor is computed."""


@dataclass(frozen=True)
class Estimator:
    """Computes the results of a timing from its samples."""

    problem: Problem
    machine: Machine | None
    """Peaks of the device; None for a GPU without an entry in the tables."""
    confidence: float

    def result(self, evaluation: Evaluation, plan: Plan, samples: Samples, others: Sequence[str]) -> Evaluation:
        """Return the evaluation with times and speedups. Raises KernelFailure when a time is impossible.

        A time below that of the reference's work is a label only: a better algorithm may do less.
        """
        timings = self.timings(samples, plan.candidate, plan.cases)
        below = [t for t in timings if t.floor_us is not None and t.time_us * FLOOR_SLACK < t.floor_us]
        if below and self.problem.work_is_least:
            limit = f"{below[0].case}: {below[0].time_us:.2f} us, below the bound of {below[0].floor_us:.2f} us"
            raise KernelFailure(Verdict.REJECTED, "quarantined: below the roofline floor of this machine", (limit,))
        speedups = tuple(self.speedup(samples, plan, other) for other in others)
        slower = [case for s in speedups if s.against == plan.baseline for case in s.slower_cases]
        labels = (*evaluation.labels, *(f"measured:slower-case:{case}" for case in slower))
        labels = (*labels, *(f"measured:less-than-the-references-work:{timing.case}" for timing in below))
        clocks = tuple(_clocks(samples, plan.candidate, case.name) for case in plan.cases)
        return evaluation.model_copy(
            update={"timings": timings, "speedups": speedups, "labels": labels, "clocks": clocks}
        )

    def timings(self, samples: Samples, name: str, cases: Sequence[Case]) -> tuple[Timing, ...]:
        """Return one source's time per case."""
        return tuple(self._timing(samples, name, case) for case in cases)

    def _timing(self, samples: Samples, name: str, case: Case) -> Timing:
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

    def speedup(self, samples: Samples, plan: Plan, against: str) -> Speedup:
        """Return how many times faster the candidate was than `against` in the same blocks."""
        name, margin = plan.candidate, plan.margin(samples.stages)
        estimate = statistics.ratio(samples.table(name), samples.table(against))
        pairs: dict[str, PairedTime] = {}
        slower: list[str] = []
        for case in (case.name for case in plan.cases):
            ours, theirs = samples.blocks_us(name, case), samples.blocks_us(against, case)
            time_us, against_us = (math.exp(statistics.time(blocks).log) for blocks in (ours, theirs))
            pairs[case] = PairedTime(time_us=time_us, against_us=against_us)
            _, high = statistics.ratio([ours], [theirs]).interval(plan.confidence)
            slower += [case] if high < 1 - margin else []
        return Speedup(
            against=against,
            ratio=math.exp(estimate.log),
            interval=estimate.interval(plan.confidence),
            margin=margin,
            stages=samples.stages,
            cases=pairs,
            slower_cases=tuple(slower),
        )


def _clocks(samples: Samples, name: str, case: str) -> Clocks:
    rows = samples.rows_of(name, case)
    event_us = stats.median(row.reading.event_ns / row.calls for row in rows) / 1000
    return Clocks(
        case=case,
        host_us=stats.median(row.wall_ns / row.calls for row in rows) / 1000,
        worker_us=stats.median(row.reading.ns / row.calls for row in rows) / 1000,
        event_us=event_us or None,
        cpu_us=stats.median(row.reading.cpu_ns / row.calls for row in rows) / 1000,
        calls_per_row=round(stats.median(row.calls for row in rows)),
        switches=sum(row.reading.switches for row in rows),
    )
