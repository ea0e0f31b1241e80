"""The judge of a target that is not there: executes a kernel in Triton's interpreter, and predicts its time.

Right or wrong is decided as on any target, by the same verifier and its sandboxed workers; what the compiler makes of
the kernel is seen in full; its time is what the machine model says, and nothing calls it measured.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kernel_scientist.harness.failure import KernelFailure, failed
from kernel_scientist.harness.verifier import Contestant, Verifier
from kernel_scientist.harness.workshop import Workshop
from kernel_scientist.inspection import extension, inspector
from kernel_scientist.machine.gpus import Gpu
from kernel_scientist.params import Harness
from kernel_scientist.problems.taskfolder import Problem, Profile
from kernel_scientist.records import Case, CompileReport, Evaluation, Kernel, Verdict
from kernel_scientist.screen import screen

INTERPRETED = "cpu"
"""Profile whose cases a kernel is executed on: sized for an interpreter."""
UNMEASURED = "predicted by a model of {}, not measured"


class Modeller(Verifier):
    """Judges kernels for one problem on one GPU's model."""

    def __init__(self, problem: Problem, profile: str, harness: Harness, workshop: Workshop, gpu: Gpu) -> None:
        super().__init__(problem, profile, harness, workshop)
        self.gpu = self.machine = gpu
        self.profile = merged(problem, profile)

    def reharnessed(self, harness: Harness) -> "Modeller":
        """Return the same judge with other settings."""
        return Modeller(self.problem, self.profile_name, harness, self.workshop, self.gpu)

    def compile(self, kernel: Kernel) -> Evaluation:
        """Screen the kernel's file, see what it launches on every timed case, compile that, predict its time."""
        start = time.monotonic()
        with ThreadPoolExecutor(1) as beside:
            screening = beside.submit(screen, kernel.source, kernel.language)
            evaluation = self._inspected(kernel)
            seen = screening.result()
        found = {
            "labels": tuple(dict.fromkeys(f"{label.severity}:{label.name}" for label in seen)),
            "evidence": (
                *evaluation.evidence,
                *(f"line {label.line or '?'}: {label.name}: {label.detail}" for label in seen),
            ),
            "seconds": {"compile": round(time.monotonic() - start, 3)},
            "by_model": True,
        }
        return evaluation.model_copy(update=found)

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Execute a Triton kernel in the interpreter, its memory watched. HIP without a GPU is not executed."""
        if so_far.verdict is Verdict.OK and kernel.language == "hip":
            words = "compiled and inspected, not executed: a HIP kernel needs a GPU"
            return so_far.model_copy(update={"reason": words, "coverage": "none"})
        return super().check(kernel, so_far, cases)

    def time(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        against: Sequence[Contestant],
        rival: str | None = None,
        cases: Sequence[Case] | None = None,
    ) -> Evaluation:
        """Say that nothing was measured. Predictions were made when the kernel was compiled; other cases get theirs."""
        if so_far.verdict is not Verdict.OK:
            return so_far
        changed: dict[str, object] = {"reason": so_far.reason or UNMEASURED.format(self.gpu.name)}
        if cases is not None:
            changed["predictions"] = self.inspect(kernel.source, cases).predictions(self.problem, cases)
        return so_far.model_copy(update=changed)

    def inspect(self, source: str, cases: Sequence[Case]) -> inspector.Inspection:
        """Return what a submission launches. Raises KernelFailure."""
        return inspector.inspect(source, self.problem, cases, self.gpu, self.harness.inspect_timeout_s)

    def _inspected(self, kernel: Kernel) -> Evaluation:
        empty = Evaluation(verdict=Verdict.OK)
        try:
            found = self.inspect(kernel.source, self.profile.benchmarks)
            report = extension.compiled(found, self.harness.build_timeout_s)
        except KernelFailure as failure:
            return failed(failure, empty)
        evaluation = empty.model_copy(update={"compile": report, "environment": self._environment(report)})
        if not report.ok:
            words = report.log.strip().splitlines() or ["no word from the compiler"]
            refused = KernelFailure(Verdict.COMPILE_ERROR, f"the compiler refused it: {words[0]}", (report.log,))
            return failed(refused, evaluation)
        return evaluation.model_copy(update={"predictions": found.predictions(self.problem, self.profile.benchmarks)})

    def _environment(self, report: CompileReport) -> dict[str, str]:
        return {"machine": f"model of {self.gpu.name}", "arch": self.gpu.arch, "compiler": report.compiler}


def merged(problem: Problem, profile: str) -> Profile:
    """Return what is executed and what is predicted: small cases for the interpreter, the problem's own for the model.

    A profile that is named is used for both.
    """
    if profile != "auto":
        return problem.profile(profile)
    full = problem.profile("full")
    small = problem.profile(INTERPRETED) if INTERPRETED in problem.profiles else full
    return Profile(tests=small.tests, benchmarks=full.benchmarks, held_out=small.held_out, vary=small.vary)
