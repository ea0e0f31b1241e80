"""The trusted evaluator: compiles a kernel, checks it, times it. Owns seeds, expected outputs, tolerances and verdicts.

Each step takes an `Evaluation` and returns the next one; that of a failed kernel is returned unchanged. A kernel's
fault becomes a verdict; an exception means that the system is broken (InfrastructureError: perhaps temporarily).
"""

import contextlib
import copy
import functools
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.source import read_kernel
from kernel_scientist.evaluation import compat
from kernel_scientist.evaluation.correctness import policy, summation
from kernel_scientist.evaluation.correctness.memory_report import MemoryReports
from kernel_scientist.evaluation.correctness.policy import Observed
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.inputs import InputSet
from kernel_scientist.evaluation.screen.screening import screen
from kernel_scientist.evaluation.screen.source import RuleMatch
from kernel_scientist.evaluation.timing import aa_noise, conditions, impossible, measured_peaks, raw
from kernel_scientist.evaluation.timing.estimate import Estimator
from kernel_scientist.evaluation.timing.plan import Hold, TimedSource, TimingPlan, never
from kernel_scientist.hardware import gpus, measured
from kernel_scientist.hardware.peaks import Machine, this_cpu
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.errors import BesideError
from kernel_scientist.records.evaluation import CompileReport, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure, failed, noted
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.worker_pool import WorkerPool

progress = logging.getLogger("kernel_scientist.progress")
MOST_CONFIGURATIONS = 40
"""Most calls more in which configurations of an autotuner are tried that the cases have not tried."""
NOT_TIMED = "right as code for gfx942, executed here; not timed: there is no GPU"
SECRET_CASES = 3
"""Number of secret random cases on which a kernel is checked if the problem has ranges of sizes."""


class Evaluator:
    """Evaluates kernels for one problem on one device."""

    def __init__(
        self,
        problem: Problem,
        profile: str,
        harness: Harness,
        pool: WorkerPool,
        cases: Profile | None = None,
        timed: bool | None = None,
    ) -> None:
        """`cases`: other cases than the profile's. `timed`: whether kernels are timed, if that is not said by their
        language."""
        self.problem, self.pool = problem, pool
        self.profile_name, self.profile, self._timed = profile, cases or problem.profile(profile), timed
        self.machine: Machine | None = this_cpu() if pool.device == "cpu" else gpus.of_device(pool.device)
        """Peaks of the device; None for a GPU without an entry in the tables."""
        self.is_idle: Callable[[], bool] = never
        """Whether the device would be idle after the timing in progress (`TimingPlan.is_idle`): an engine knows."""
        self.noise_limit_s = math.inf
        """Seconds that a measurement of the noise may take."""
        self._short: tuple[list[float], str] | None = None
        """What such a measurement found that ended early, and words on it; kept for this evaluator's work only."""
        self._set_up(harness)

    def _set_up(self, harness: Harness) -> None:
        self.harness, self._peaks_tried = harness, False
        self.driver = Driver(self.problem, harness, self.pool)
        self.inputs = self.driver.inputs
        self.estimator = Estimator(self.problem, self.machine, harness.confidence)

    @functools.cached_property
    def margins(self) -> tuple[float, ...]:
        """Margin per stage: `harness.margin` or this machine's A/A noise, whichever is larger."""
        noise = self._known_noise()
        if noise is None:  # not in turn: the process in turn may wait for the device, whose lock may be held here
            noise = self._noise(contextlib.nullcontext)
        return tuple(max(self.harness.margin, one) for one in noise)

    def machine_is_due(self) -> bool:
        """Whether the next comparison with an incumbent measures this machine first: its noise, a CPU's peaks."""
        return self.noise_is_due() or self._peaks_are_due()

    def _peaks_are_due(self) -> bool:
        wanted = self.pool.device == "cpu" and self.harness.noise_runs and not self._peaks_tried
        return bool(wanted) and measured.is_due()

    def measure_machine(self, hold: Hold) -> None:
        """Measure this machine's noise and a CPU's peaks if they are due; `hold` holds the device's lock meanwhile."""
        if self._peaks_are_due():
            self._peaks_tried = True
            measured_peaks.measure(hold)
        if self.noise_is_due():
            with aa_noise.turn(self.driver, self.profile_name):
                if self.noise_is_due():  # no other process has measured it meanwhile
                    self._noise(hold)

    def _known_noise(self) -> list[float] | None:
        if self._short and self.harness.noise_runs and len(self._short[0]) >= self.harness.stages:
            return self._short[0]
        return aa_noise.kept(self.driver, self.profile_name)

    def _noise(self, hold: Hold) -> list[float]:
        """Measure and keep the noise. One that was ended early is not kept for others, who may have more time."""
        wanted = self.harness.noise_runs
        progress.info("measuring this machine's noise on these cases, once a day: %s A/A runs", wanted)
        plan = self.plan(self.profile.benchmarks, aa_noise.FIRST, None, margins=False)
        noise, runs = aa_noise.measure(self.driver, plan, self._quick_source(), hold, self.noise_limit_s)
        if runs == wanted:
            return aa_noise.keep(self.driver, self.profile_name, noise)
        enough = runs >= aa_noise.LEAST_RUNS
        counts = "they count" if enough else "too few to count: harness.margin applies"
        words = f"{runs} of {wanted} A/A runs in the {self.noise_limit_s:.0f} s that budget.minutes leaves; {counts}"
        progress.warning("the measurement of this machine's noise ended early: %s", words)
        self._short = (noise if enough else [0.0] * len(noise), words)
        return self._short[0]

    def noise_is_due(self) -> bool:
        """Whether the next timing measures this machine's noise first, which takes a minute or more."""
        return "margins" not in vars(self) and self._known_noise() is None

    def forgo_noise(self) -> None:
        """Measure neither noise nor peaks: unless noise is known already, `harness.margin` is the margin."""
        self._peaks_tried = True
        if self.noise_is_due():
            self.margins = (self.harness.margin,) * self.harness.stages

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.pool.stopped

    def close(self) -> None:
        """End all work: it raises StoppedError."""
        self.pool.close()

    def with_harness(self, harness: Harness) -> Self:
        """Return a copy of this evaluator with other settings."""
        other = copy.copy(self)
        vars(other).pop("margins", None)
        other._set_up(harness)
        return other

    def reference(self) -> TimedSource:
        """Return the problem's reference as a source to be timed."""
        return TimedSource(name=REFERENCE, source=self.problem.reference_source)

    def is_timed(self, kernel: Kernel) -> bool:
        """Whether a kernel can be timed here. Triton's cannot without a GPU: the machine executes its code."""
        return self._timed if self._timed is not None else kernel.language != "triton" or self.pool.device != "cpu"

    def compile(self, kernel: Kernel) -> Evaluation:
        """Screen the kernel's file, import it in a worker and build the extensions that it requests."""
        reports: list[CompileReport] = []
        start, failure = time.monotonic(), None
        with ThreadPoolExecutor(1) as meanwhile:
            screening = meanwhile.submit(screen, kernel.source)
            try:
                with self.pool.worker() as worker:
                    self.driver.imported(worker, kernel.source, reports)
                    self.pool.require_room(worker)
                refused = next((r for r in reports if not r.ok), None)
                if refused is not None:
                    raise KernelFailure(Verdict.COMPILE_ERROR, f"compiler error: {gxx.headline(refused.log)}")
            except KernelFailure as caught:
                failure = caught
                failure.untimed = True
            findings = screening.result()
        evaluation = Evaluation(
            verdict=Verdict.OK, sandbox=self.pool.layers, compile=gxx.merged(reports, kernel.language)
        )
        evaluation = self.screened(evaluation, findings)
        if evaluation.verdict is not Verdict.OK:
            return evaluation
        if failure is not None:
            return failed(failure, evaluation)
        found = {"environment": conditions.describe(self.pool)}
        return with_seconds(evaluation.model_copy(update=found), "compile", start)

    def screened(self, evaluation: Evaluation, findings: Sequence[RuleMatch]) -> Evaluation:
        """Return the evaluation with the screen's findings added. Tampering makes the verdict `rejected`."""
        update = {
            "labels": (*evaluation.labels, *dict.fromkeys(f"{f.severity}:{f.name}" for f in findings)),
            "evidence": (*evaluation.evidence, *(f.words for f in findings)),
        }
        evaluation = evaluation.model_copy(update=update)
        try:
            with noted(untimed=True):
                policy.require_untampered(self.problem.policy, self.harness.tampering, findings)
        except KernelFailure as failure:
            return failed(failure, evaluation.model_copy(update={"predictions": ()}))
        return evaluation

    def check(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        cases: Sequence[Case] | None = None,
        reports: MemoryReports | None = None,
    ) -> Evaluation:
        """Check all cases with published, secret, neighbour and stressed inputs; make some observed calls.

        `reports` collects what the machine says of the use of memory.
        """
        if so_far.verdict is not Verdict.OK:
            return so_far
        start, use, sums, reports = time.monotonic(), Observed(), "", reports or MemoryReports()
        chosen = self.profile.tests if cases is None else tuple(cases)
        try:
            with self.pool.worker() as worker:
                secret = self.inputs.secret(self.profile, SECRET_CASES)
                observed = policy.observed_cases(self.driver, self.profile, chosen, self.is_timed(kernel))
                self.driver.load(worker, kernel.source, (*chosen, *secret, *observed))
                called = worker.programs and any(map(self.profile.times, observed))
                for case in (*chosen, *secret):
                    with noted(untimed=not called and not self.profile.times(case)):
                        self._check_case(worker, case, reports)
                    called = called or self.profile.times(case)
                for case in itertools.islice(itertools.cycle((*chosen, *secret)), MOST_CONFIGURATIONS):
                    if reports.untried:
                        self._check_call(worker, self.inputs.draw(case), reports)
                has_orders = self.pool.machine is not None and summation.matters(so_far.compile)
                if has_orders and chosen and not reports.configurations:
                    sums = summation.noise(self.driver, worker, chosen[-1], reports)
                if self.pool.kernel_threads:
                    use = policy.observe(self.driver, worker, observed)
            if not self.pool.kernel_threads:  # torch's profiler needs a thread
                with self.pool.worker(observed=True) as worker:
                    self.driver.load(worker, kernel.source, observed)
                    use = policy.observe(self.driver, worker, observed)
            so_far = self._with_observations(so_far, use.labels(), reports, sums)
            with noted(untimed=True):  # its words are the policy's
                policy.require(self.problem.policy, use)
        except KernelFailure as failure:
            return failed(compat.explained(failure, self.problem), so_far)
        return with_seconds(so_far, "check", start)

    def time(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        against: Sequence[TimedSource],
        baseline: str | None = None,
        cases: Sequence[Case] | None = None,
    ) -> Evaluation:
        """Time a kernel interleaved with others; the outputs of all timed calls are verified.

        `baseline` names the source that the kernel must beat (default: the last one of `against`). The remaining stages
        are skipped as soon as the comparison with it is decided, whatever is known of the others by then. If an
        optional source fails, the kernel is timed without it, and `environment` says so.
        """
        if so_far.verdict is not Verdict.OK:
            return so_far
        if not self.is_timed(kernel):
            return so_far.model_copy(update={"reason": NOT_TIMED})
        start, before = time.monotonic(), conditions.Load.now()
        chosen = self.profile.benchmarks if cases is None else tuple(cases)
        plan = self.plan(chosen, kernel.name, baseline or (against[-1].name if against else None))
        try:
            samples = impossible.time_again_if_impossible(
                self.driver, self.estimator, plan, [TimedSource.of(kernel), *against]
            )
        except BesideError as error:
            rest = [source for source in against if source.name != error.source or not source.optional]
            if len(rest) == len(against):
                raise
            progress.warning("%s; %s is timed without it", error, kernel.name)
            timed_without = self.time(kernel, so_far, rest, plan.baseline, cases)
            note = {f"without {error.source}": error.reason}
            return timed_without.model_copy(update={"environment": {**timed_without.environment, **note}})
        except KernelFailure as failure:
            return failed(failure, so_far)
        finalists = [source.name for source in against if source.is_finalist]
        evaluation = raw.result(self.estimator, so_far, plan, samples, [s.name for s in against], finalists)
        happened = {**conditions.describe(self.pool), **before.until_now()}  # so_far may come from an earlier day
        if self._short:
            happened["noise"] = self._short[1]
        in_force = {"environment": happened, "sandbox": self.pool.layers}
        return with_seconds(evaluation.model_copy(update=in_force), "time", start)

    def plan(self, cases: Sequence[Case], candidate: str, baseline: str | None, margins: bool = True) -> TimingPlan:
        """Return the plan of a timing: cases, candidate, stages and the test that decides."""
        harness, many = self.harness, max(1, len(cases))
        pairs = max(harness.blocks, -(-harness.pairs // many))  # a pair: one pass and its reverse, per case
        turns = 2 if pairs >= 2 * harness.blocks else 1
        return TimingPlan(
            cases=tuple(cases),
            candidate=candidate,
            baseline=baseline,
            blocks=-(-pairs // turns),
            turns=turns,
            stages=harness.stages,
            confidence=1 - (1 - harness.confidence) / harness.stages,
            margins=self.margins if margins else (),
            drop_after=harness.drop_after,
            drop_below=harness.drop_below,
            is_idle=self.is_idle,
        )

    def _with_observations(
        self, so_far: Evaluation, labels: Sequence[str], reports: MemoryReports, sums: str
    ) -> Evaluation:
        every = dict.fromkeys((*so_far.labels, *(f"measured:{label}" for label in labels)))
        coverage = reports.words("executed:") if self.pool.machine is not None else ""
        evidence = (*so_far.evidence, *([sums] if sums else []))
        return so_far.model_copy(update={"labels": tuple(every), "coverage": coverage, "evidence": evidence})

    def _check_case(self, worker: WorkerClient, case: Case, reports: MemoryReports) -> None:
        published, secret = self.inputs.draw(case, case.seed), self.inputs.draw(case)
        stressed = [self.inputs.stressed(case, scales) for scales in self.problem.stress]
        for inputs in (published, secret, self.inputs.neighbour(secret), *stressed):
            self._check_call(worker, inputs, reports)

    def _check_call(self, worker: WorkerClient, inputs: InputSet, reports: MemoryReports) -> None:
        try:
            with (
                reports.of_call(worker, inputs.case.name) if self.pool.machine is not None else contextlib.nullcontext()
            ):
                _, outputs = self.driver.row(worker, {0: inputs})
            self.driver.verify([inputs], outputs)
        except KernelFailure as failure:
            if not reports.latest:
                raise
            raise reports.with_configuration(failure) from failure

    def _quick_source(self) -> TimedSource:
        """Return the source for A/A runs: the problem's last correct C++ seed (it is fast), else the reference."""
        for file in reversed(self.problem.seeds("cpp")) if self.pool.device == "cpu" else ():
            kernel = Kernel(name=file.stem, language="cpp", source=read_kernel(file))
            if self.check(kernel, self.compile(kernel)).verdict is Verdict.OK:
                return TimedSource.of(kernel)
        return self.reference()


def with_seconds(evaluation: Evaluation, step: str, start: float) -> Evaluation:
    """Return the evaluation with the seconds since `start` as those of a step."""
    seconds = {**evaluation.seconds, step: round(time.monotonic() - start, 3)}
    return evaluation.model_copy(update={"seconds": seconds})
