"""Where a kernel that was only compiled spends its time, by source line: one timed case is executed to be counted.

No value is compared and nothing is checked but addresses: this says where time goes, not whether the kernel is right.
"""

from collections.abc import Sequence

from kernel_scientist.evaluate.correctness.timed_cases import TimedCases
from kernel_scientist.evaluate.counted import CallCounts, CountedPredictor
from kernel_scientist.evaluate.driver import Driver
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CompileReport, Prediction
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.workers import prepared
from kernel_scientist.workers.pool import WorkerPool

MOST_S = 60.0
"""Seconds within which the case's samples must have been executed."""


def chosen(problem: Problem, gpu: Gpu, cases: Sequence[Case], predictions: Sequence[Prediction]) -> Case:
    """Return the case to execute: the one that is furthest from its floor, without predictions one of middle size."""
    if predictions:
        furthest = min(predictions, key=lambda p: p.floor_us / p.time_us).case
        return next(case for case in cases if case.name == furthest)
    ordered = sorted(cases, key=lambda case: roofline_us(problem.work(case), gpu))
    return ordered[(len(ordered) - 1) // 2]


def predicted(
    problem: Problem, gpu: Gpu, harness: Harness, source: str, report: CompileReport, case: Case
) -> tuple[CompileReport, tuple[Prediction, ...]]:
    """Return the report with the case's launches, and its prediction by the counts, with its lines; none if what it does
    cannot be predicted, and the report says why.

    Raises KernelFailure if the kernel fails, SetupError if this host cannot execute it.
    """
    machine = prepared.simulated(problem, gpu, harness.threads)
    harness = harness.model_copy(update={"executed_timeout_s": MOST_S, "call_timeout_s": MOST_S})
    with WorkerPool(harness, "cpu", machine=machine, kernel_threads=problem.policy.threads) as pool:
        driver = Driver(problem, harness, pool)
        work = TimedCases(driver, {}, report.launches, counted=[case.name])
        with pool.worker() as worker:
            driver.load(worker, source, ())
            work.count(worker, case)
    calls = {name: CallCounts.of(call) for name, call in work.calls.items()}
    found = CountedPredictor(problem, gpu, report, calls, source)
    counted, predictions = found.predictions([case])
    lines = found.lines(case.name)
    return counted, tuple(p.model_copy(update={"lines": lines}) for p in predictions)
