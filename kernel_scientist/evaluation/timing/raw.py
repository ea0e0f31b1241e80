"""Raw samples as a record, and the figures from such a record: what was published can be computed again."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.evaluation.timing.estimate import Estimator, Samples
from kernel_scientist.evaluation.timing.plan import TimingPlan
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Evaluation, Speedup, Timing
from kernel_scientist.records.raw_samples import Bound, CaseSamples, RawRow, RawSamples, RecordedProblem, digest_of
from kernel_scientist.workers.client import Row
from kernel_scientist.workers.native import Reading

TIMED = ("slower-case", "less-than-the-references-work", "works-on-after-its-last-event")
"""Names of the labels that follow from the samples."""


def result(
    estimator: Estimator,
    evaluation: Evaluation,
    plan: TimingPlan,
    samples: Samples,
    others: Sequence[str],
    finalists: Sequence[str] = (),
) -> Evaluation:
    """Return `Estimator.result` together with the samples that it is computed from."""
    found = estimator.result(evaluation, plan, samples, others, finalists)
    return found.model_copy(update={"samples": record(estimator, plan, samples, finalists)})


def record(estimator: Estimator, plan: TimingPlan, samples: Samples, finalists: Sequence[str] = ()) -> RawSamples:
    """Return the samples of a timing as a record."""
    readings = tuple(_readings(samples, *key) for key in samples.rows)
    return RawSamples(
        evaluator=environment.evaluator_digest(),
        problem=RecordedProblem(
            digest=estimator.problem.digest, works={case.name: estimator.problem.work(case) for case in plan.cases}
        ),
        candidate=plan.candidate,
        baseline=plan.baseline,
        finalists=tuple(finalists),
        sources=samples.sources,
        cases=plan.cases,
        bound=bound(estimator.machine) if estimator.machine else None,
        confidence=estimator.confidence,
        ratio_confidence=plan.confidence,
        margins=plan.margins,
        drop_below=plan.drop_below,
        dropped_after=samples.dropped_after,
        readings=readings,
        digest=digest_of(readings),
    )


def is_timed(label: str) -> bool:
    """Return whether a label follows from the samples."""
    return label.startswith(tuple(f"measured:{name}:" for name in TIMED))


@dataclass(frozen=True)
class Recorded:
    """The figures of recorded samples, computed by the same functions as those of a new timing."""

    raw: RawSamples

    def evaluation(self, recorded: Evaluation) -> Evaluation:
        """Return an evaluation with every figure that follows from the samples computed again.

        Raises ValueError, KeyError or ZeroDivisionError for samples that no timing can have made.
        """
        untimed = tuple(label for label in recorded.labels if not is_timed(label))
        bare = recorded.model_copy(update={"labels": untimed})
        return self._estimator.result(bare, self._plan, self._samples, self._others, self.raw.finalists)

    def held_out(self) -> tuple[tuple[Timing, ...], tuple[Speedup, ...]]:
        """Return times and speedups of the candidate, as a confirmation has them. Raises as `evaluation`."""
        estimator, plan, samples = self._estimator, self._plan, self._samples
        timings = tuple(estimator.timing(samples, plan.candidate, case) for case in plan.cases)
        others = self._others if plan.cases else []
        return timings, tuple(estimator.speedup(samples, plan, other) for other in others)

    @property
    def _others(self) -> list[str]:
        return [name for name in self.raw.sources if name != self.raw.candidate]

    @property
    def _estimator(self) -> Estimator:
        known = self.raw.bound
        rates = Machine(known.name, known.gbps, {"": known.gflops}, kept_bytes=known.kept_bytes) if known else None
        return Estimator(self.raw.problem, rates, self.raw.confidence)

    @property
    def _plan(self) -> TimingPlan:
        raw = self.raw
        return TimingPlan(
            cases=raw.cases,
            candidate=raw.candidate,
            baseline=raw.baseline,
            blocks=0,  # how many were planned decides nothing once they are timed
            turns=0,
            stages=0,
            confidence=raw.ratio_confidence,
            margins=raw.margins,
            drop_below=raw.drop_below,
        )

    @property
    def _samples(self) -> Samples:
        found = Samples(dropped_after=self.raw.dropped_after, sources=self.raw.sources)
        for one in self.raw.readings:
            processes = [[[_row(row) for row in block] for block in process] for process in one.rows]
            found.rows[one.source, one.case] = processes
            found.unqueued[one.source, one.case] = [_row(row) for row in one.unqueued]
        return found


def bound(machine: Machine) -> Bound:
    """Return the rates from which floors are computed."""
    rate = machine.bound_gbps or machine.memory_gbps
    return Bound(name=machine.name, gflops=machine.most_gflops, gbps=rate, kept_bytes=machine.kept_bytes)


def _readings(samples: Samples, source: str, case: str) -> CaseSamples:
    processes = samples.rows[source, case]
    return CaseSamples(
        source=source,
        case=case,
        rows=tuple(tuple(tuple(map(_raw, block)) for block in process) for process in processes),
        unqueued=tuple(map(_raw, samples.unqueued.get((source, case), ()))),
    )


def _raw(row: Row) -> RawRow:
    ns, cpu_ns, switches, event_ns, ahead_ns = row.reading
    return row.calls, row.wall_ns, ns, cpu_ns, switches, event_ns, ahead_ns


def _row(raw: RawRow) -> Row:
    return Row(raw[0], raw[1], Reading(*raw[2:]))
