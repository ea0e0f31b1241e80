"""Where a kernel that was only compiled spends its time, by source line: one timed case is executed to be counted.

No value is compared and nothing is checked but addresses: this says where time goes, not whether the kernel is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.evaluation.correctness.timed_cases import TimedCases
from kernel_scientist.evaluation.counted import CallCounts, CountedPredictor
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.timed_inputs import TimedInputs
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport, Prediction
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers import prepared
from kernel_scientist.workers.worker_pool import WorkerPool

MOST_S = 60.0
"""Seconds within which the case's samples must have been executed."""
Found = tuple[CompileReport, tuple[Prediction, ...]]
"""A report with launches and what is missing, and predictions."""


@dataclass(frozen=True)
class Executed:
    """Executes samples of one timed case of a submission for an AMD GPU."""

    problem: Problem
    gpu: Gpu
    harness: Harness
    source: str
    """The submission's file."""

    def added(self, cases: Sequence[Case], report: CompileReport, predictions: tuple[Prediction, ...]) -> Found:
        """Return report and predictions, one of these with the lines that take its time; without predictions that of
        the executed case. The report says why where there are none."""
        case = self.chosen(cases, predictions)
        try:
            counted, found = self._predicted(case, report)
        except (KernelFailure, SetupError) as failure:
            missed = f"{case.name}: no profile by source line: {printable(failure)}"
            return report.model_copy(update={"missed": (*report.missed, missed)}), predictions
        if not predictions:
            return counted, found
        lines = {one.case: one.lines for one in found}
        return report, tuple(p.model_copy(update={"lines": lines.get(p.case, ())}) for p in predictions)

    def chosen(self, cases: Sequence[Case], predictions: Sequence[Prediction]) -> Case:
        """Return the case that is furthest from its floor, without predictions one of middle size."""
        if predictions:
            furthest = min(predictions, key=lambda p: p.floor_us / p.time_us).case
            return next(case for case in cases if case.name == furthest)
        ordered = sorted(cases, key=lambda case: roofline_us(self.problem.work(case), self.gpu))
        return ordered[(len(ordered) - 1) // 2]

    def _predicted(self, case: Case, report: CompileReport) -> Found:
        """Return the case's launches and its prediction by the counts. Raises KernelFailure, SetupError."""
        machine = prepared.simulated(self.problem, self.gpu, self.harness.threads)
        harness = self.harness.model_copy(update={"executed_timeout_s": MOST_S, "call_timeout_s": MOST_S})
        with WorkerPool(harness, "cpu", machine=machine, kernel_threads=self.problem.policy.threads) as pool:
            driver = Driver(self.problem, harness, pool)
            work = TimedCases(driver, TimedInputs(driver.inputs), [case], report.launches, [case.name])
            with pool.worker() as worker:
                work.driver.load(worker, self.source, ())
                work.count(worker, case)
        calls = {name: CallCounts.of(call) for name, call in work.calls.items()}
        found = CountedPredictor(self.problem, self.gpu, report, calls, self.source)
        counted, predictions = found.predictions([case])
        lines = found.lines(case.name)
        return counted, tuple(p.model_copy(update={"lines": lines}) for p in predictions)
