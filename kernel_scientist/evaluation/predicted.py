"""The evaluation of kernels for a GPU that this host lacks.

Correctness is checked as on any target, by the same evaluator and its workers. The machine executes the kernel's code
(`gpu.machine`): small cases in checking runs, which watch its use of memory, then the timed cases. Its time is
predicted by the performance model.
"""

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kernel_scientist.evaluation.correctness.memory_report import MemoryReports
from kernel_scientist.evaluation.correctness.timed_cases import TimedCases
from kernel_scientist.evaluation.counted import CallCounts, CountedPredictor
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.evaluator import Evaluator, with_seconds
from kernel_scientist.evaluation.previewed import with_report
from kernel_scientist.evaluation.screen.screening import screen
from kernel_scientist.evaluation.timed_inputs import TimedInputs
from kernel_scientist.evaluation.timing.estimate import FLOOR_SLACK
from kernel_scientist.gpu.capture.code_findings import omissions
from kernel_scientist.gpu.capture.preview import Previewer, refusal
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Prediction
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure, failed
from kernel_scientist.workers.worker_pool import WorkerPool

SMALL = "cpu"
"""Name of the profile whose cases are executed in checking runs."""
UNPREDICTED = "correct where it was executed; some cases could not be predicted (see `missed` of the compile report)"
UNAWAITED = "its values are right only where what it does not wait for is done in time"
UNMEASURED = "predicted by a model of {}, not measured"
NOT_EXECUTED = "not executed: only code for AMD's GPUs is executed here, so nobody knows whether it is right"
LEAST_S = 1e-6
"""CPU seconds for the timed cases of which only counts are wanted: each gets its least share."""


class PredictedEvaluator:
    """Evaluates kernels for a GPU that is not present: a checker and its workers, a previewer and a model."""

    def __init__(
        self, problem: Problem, profile: str, harness: Harness, pool: WorkerPool, gpu: Gpu, by_model: bool = True
    ) -> None:
        """`by_model`: kernels are ranked by predictions; if not, somebody else times them."""
        self.problem, self.harness, self.pool, self.gpu, self.by_model = problem, harness, pool, gpu, by_model
        self.profile = merged(problem, profile)
        self.checker = Evaluator(problem, profile, harness, pool, self.profile, timed=not by_model)
        self.previewer = Previewer(problem, gpu, harness)
        self.timed_inputs = TimedInputs(self.checker.driver.inputs)

    @property
    def driver(self) -> Driver:
        """The driver of the checker's workers."""
        return self.checker.driver

    def compile(self, kernel: Kernel) -> Evaluation:
        """Screen the kernel's file, and compile what it launches on every timed case."""
        start = time.monotonic()
        with self.pool.worker() as worker:
            layers = worker.layers
        with ThreadPoolExecutor(1) as meanwhile:
            screening = meanwhile.submit(screen, kernel.source)
            empty = Evaluation(verdict=Verdict.OK, by_model=self.by_model, sandbox=layers)
            evaluation = self._previewed(kernel, empty)
            findings = screening.result()
        known = {"machine": f"model of {self.gpu.name}", **evaluation.environment}
        evaluation = with_seconds(evaluation.model_copy(update={"environment": known}), "compile", start)
        return self.checker.screened(evaluation, findings)

    def _previewed(self, kernel: Kernel, so_far: Evaluation) -> Evaluation:
        """Add the preview to an evaluation. Without one there is no result for the kernel: it fails."""
        try:
            seen = self.previewer.preview(kernel.source, self.profile.benchmarks)
        except KernelFailure as failure:
            return failed(failure, so_far)
        found = with_report(so_far, seen.report, self.gpu)
        return found if seen.report.ok else failed(refusal(seen.report), found if seen.refused else so_far)

    def _above_floor(self, found: Evaluation) -> Evaluation:
        """Return the evaluation; failed if a prediction is below the floor of a least work.

        The model moves every byte, because it starts and ends with empty caches.
        """
        cold = replace(self.gpu, kept_bytes=0)
        floors_us = {case.name: floor_us(self.problem.work(case), cold) for case in self.profile.benchmarks}
        for p in found.predictions:
            if self.problem.work_is_least and p.time_us * FLOOR_SLACK < floors_us[p.case]:
                words = f"{p.case}: {p.time_us:.2f} us predicted, the floor is {floors_us[p.case]:.2f} us"
                reason = "quarantined: predicted below the floor"
                cleared = found.model_copy(update={"predictions": ()})
                return failed(KernelFailure(Verdict.REJECTED, reason, (words,)), cleared)
        return found

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Execute a kernel: the small cases in checking runs, then the timed ones.

        The machine is done with each instruction before the next one, so a wait that a launched kernel lacks changes no
        value: it is found in the assembly. Where nothing here executes its code the verdict is `compiled`.
        """
        if so_far.verdict is Verdict.OK and self.pool.machine is None:
            return so_far.model_copy(update={"verdict": Verdict.COMPILED, "reason": NOT_EXECUTED})
        if so_far.verdict is not Verdict.OK:
            return so_far
        benchmarks = self.profile.benchmarks
        counted, launches = [case.name for case in benchmarks], so_far.compile.launches if so_far.compile else ()
        work = TimedCases(self.driver, self.timed_inputs, benchmarks, launches, counted)
        with self.timed_inputs.drawn_ahead(work.cases if self.harness.executed_s else ()):
            return self._check(kernel, so_far, cases, work)

    def _check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None, work: TimedCases) -> Evaluation:
        start, reports = time.monotonic(), MemoryReports()
        checked = self.checker.check(kernel, so_far, cases, reports)
        if checked.verdict is not Verdict.OK:
            return checked
        report = checked.compile or CompileReport(ok=True, compiler="")
        launched = {launch.kernel for launch in report.launches} | reports.kernels
        if lacking := omissions(report.objects, launched):
            return failed(KernelFailure(Verdict.INCORRECT, f"{UNAWAITED}: {lacking[0]}", lacking), checked)
        if not self.harness.executed_s:
            return checked
        try:
            words = self._on_timed_cases(kernel, work, reports.kernels)
            checked = checked.model_copy(update={"coverage": "; ".join((checked.coverage, words))})
            return with_seconds(self._with_counts(checked, self._counted(kernel, report, work)), "check", start)
        except KernelFailure as failure:
            return failed(failure, checked)

    def _with_counts(self, checked: Evaluation, counted: CountedPredictor) -> Evaluation:
        """Add the predictions, and where time goes by source line. May raise KernelFailure."""
        report, predictions = counted.predictions(self.profile.benchmarks)
        checked = self._above_floor(checked.model_copy(update={"compile": report, "predictions": predictions}))
        lined = tuple(p.model_copy(update={"lines": counted.lines(p.case)}) for p in checked.predictions)
        return checked.model_copy(update={"predictions": lined})

    def predict(self, kernel: Kernel, cases: Sequence[Case]) -> tuple[Prediction, ...]:
        """Return the predicted times of some timed cases, without a verdict; none if they cannot be predicted.

        What Triton launches is counted without inputs, if that suffices. Otherwise what is counted is executed with
        inputs, and its values are compared. Raises KernelFailure.
        """
        seen = self.previewer.preview(kernel.source, cases, counts=True)
        if not seen.report.ok:
            raise refusal(seen.report)
        if seen.predictions or self.pool.machine is None:
            return seen.predictions
        driver = Driver(self.problem, self.harness.model_copy(update={"executed_s": LEAST_S}), self.pool)
        work = TimedCases(driver, self.timed_inputs, cases, counted=[case.name for case in cases])
        self._on_timed_cases(kernel, work)
        return self._counted(kernel, seen.report, work).predictions(cases)[1]

    def _counted(self, kernel: Kernel, report: CompileReport, done: TimedCases) -> CountedPredictor:
        calls = {name: CallCounts.of(call) for name, call in done.calls.items()}
        return CountedPredictor(self.problem, self.gpu, report, calls, kernel.source)

    def _on_timed_cases(self, kernel: Kernel, work: TimedCases, watched: Collection[str] = ()) -> str:
        """Return a sentence on what a worker executed of timed cases. Raises KernelFailure."""
        with self.pool.worker() as worker:
            self.driver.load(worker, kernel.source, ())
            return work.run(worker, watched)

    def time(self, kernel: Kernel, so_far: Evaluation, *_others: object) -> Evaluation:
        """Say of a correct kernel that its times are predicted, not measured, unless it has a reason already."""
        if so_far.verdict is not Verdict.OK:
            return so_far
        missing = "" if so_far.predictions else UNPREDICTED
        return so_far.model_copy(update={"reason": so_far.reason or missing or UNMEASURED.format(self.gpu.name)})


def merged(problem: Problem, profile: str) -> Profile:
    """Return the profile of a model target: small cases for checking runs, the problem's cases for predictions.

    If `profile` names a profile, its cases serve both purposes.
    """
    if profile != "auto":
        return problem.profile(profile)
    full = problem.profile("full")
    small = problem.profile(SMALL) if SMALL in problem.profiles else full
    return Profile(tests=small.tests, benchmarks=full.benchmarks, held_out=small.held_out, vary=small.vary)
