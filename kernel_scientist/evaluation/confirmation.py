"""Confirmation: repeat a kernel's check and timing in fresh processes, with new seeds, and on the held-out cases."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing import conditions, impossible, raw
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.evaluation.timing.plan import TimedSource, TimingPlan
from kernel_scientist.records.evaluation import Confirmation, Evaluation, Speedup
from kernel_scientist.records.kernel import REFERENCE, Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure, failed


class ProcessSamples(NamedTuple):
    """One set of processes: samples on the public and on the held-out cases, and who used the CPU meanwhile."""

    public: Samples
    held_out: Samples
    load: dict[str, str]


Measurement = ProcessSamples | Evaluation
"""What one set of processes gave, or the candidate's failure."""


def plan(evaluator: Evaluator, cases: Sequence[Case], sources: Sequence[TimedSource], blocks: int) -> TimingPlan:
    """Return the plan of one set of processes, without early stopping."""
    usual = evaluator.plan(cases, sources[0].name, None)
    return replace(usual, blocks=blocks, stages=1, confidence=evaluator.harness.confidence)


def measure(evaluator: Evaluator, sources: Sequence[TimedSource], blocks: int) -> Measurement:
    """Time the sources (candidate first) once, in fresh processes, on the public and the held-out cases.

    It waits for a quiet machine first, at most `harness.quiet_wait_s`. Raises InfrastructureError when a source other
    than the candidate fails, StoppedError when the work is to end.
    """
    conditions.wait_for_quiet(evaluator.harness.quiet_wait_s, evaluator.stopped)
    before = conditions.Load.now()
    public = plan(evaluator, evaluator.profile.benchmarks, sources, blocks)
    hidden = plan(evaluator, evaluator.profile.held_out, sources, blocks)
    try:
        run = partial(impossible.time_again_if_impossible, evaluator.driver, evaluator.estimator)
        return ProcessSamples(run(public, sources), run(hidden, sources), before.until_now())
    except KernelFailure as failure:
        return failed(failure, Evaluation(verdict=Verdict.OK))


def conclude(
    evaluator: Evaluator,
    checked: Evaluation,
    runs: Sequence[Measurement],
    sources: Sequence[TimedSource],
    against: str | None,
) -> Confirmation:
    """Combine the runs and decide whether the kernel is confirmed.

    A kernel is confirmed if it is correct on every case and faster than `against` (`Speedup.faster`): on the public
    cases, and on the held-out ones if the problem has any. If `against` is None, correctness suffices.
    """
    measured: list[ProcessSamples] = []
    for run in runs:
        if isinstance(run, Evaluation):
            return Confirmation.of_failure(run)
        measured.append(run)
    others = [source.name for source in sources[1:]]
    shape = plan(evaluator, evaluator.profile.benchmarks, sources, 1)
    public, hidden = (Samples.joined(parts) for parts in ([m.public for m in measured], [m.held_out for m in measured]))
    busiest = max((m.load for m in measured), key=lambda load: float(load["others_percent"] or 0))
    checked = checked.model_copy(update={"environment": {**checked.environment, **busiest}})
    evaluation = raw.result(evaluator.estimator, checked, shape, public, others)
    hidden_shape = replace(shape, cases=evaluator.profile.held_out)
    compared = others if hidden_shape.cases else ()
    held_out = tuple(evaluator.estimator.speedup(hidden, hidden_shape, other) for other in compared)
    confirmed, reason = decide(evaluation, held_out, against)
    return Confirmation(
        confirmed=confirmed,
        reason=reason,
        evaluation=evaluation,
        held_out=tuple(evaluator.estimator.timing(hidden, shape.candidate, case) for case in hidden_shape.cases),
        held_out_speedups=held_out,
        held_out_samples=raw.record(evaluator.estimator, hidden_shape, hidden) if hidden_shape.cases else None,
    )


def unmeasured(evaluation: Evaluation, machine: str) -> Confirmation:
    """Return the confirmation of a kernel whose time is only predicted: its speed is unconfirmed."""
    words = f"right ({evaluation.coverage}); its time is predicted by a model of {machine}, nothing was measured"
    return Confirmation(confirmed=False, reason=words, evaluation=evaluation)


def decide(evaluation: Evaluation, held_out: Sequence[Speedup], against: str | None) -> tuple[bool, str]:
    """Return whether a kernel is confirmed, and the reason."""
    if evaluation.verdict is not Verdict.OK:
        return False, evaluation.reason
    if against is None:
        return True, "correct on every case"
    public = evaluation.speedup_over(against)
    hidden = next((s for s in held_out if s.against == against), None)
    other = "the reference" if against == REFERENCE else against
    if public is None or not public.faster:
        return False, f"not faster than {other} on the public cases{_interval(public)}"
    if not held_out:
        return True, f"faster than {other} on the public cases; the problem has no held-out ones"
    if hidden is None or not hidden.faster:
        return False, f"not faster than {other} on the held-out cases{_interval(hidden)}"
    return True, f"faster than {other} on public and held-out cases"


def _interval(speedup: Speedup | None) -> str:
    if speedup is None:
        return ""
    return f": {speedup}" if speedup.known else ": too few blocks to say"
