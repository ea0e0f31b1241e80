"""What can be known of a GPU kernel before it runs: what it compiles to, whether that fits, how long it may take."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.capture import inspect as inspector
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.toolchains import load_inline
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.evaluation import CompileReport, Prediction
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure


@dataclass(frozen=True)
class Look:
    """What was seen of a kernel."""

    report: CompileReport
    predictions: tuple[Prediction, ...]
    refused: bool = False
    """Whether the compiler or the GPU refuses it; else a report that is not ok says that it could not be looked at."""


@dataclass(frozen=True)
class Foresight:
    """Looks at kernels for one problem on one GPU, which need not be there."""

    problem: Problem
    gpu: Gpu
    harness: Harness

    def look(self, source: str, cases: Sequence[Case]) -> "Look":
        """Return what a submission compiles to, and its predicted time per case.

        Raises KernelFailure where its process dies, and (infrastructure) where this machine lacks a compiler. A refusal
        by the compiler is a report that is not ok.
        """
        found = self.inspect(source, cases)
        report = load_inline.compiled(found, self.harness.build_timeout_s)
        if not report.ok:
            return Look(report, (), found.answer.refused or bool(found.answer.inline))
        missed = () if found.answer.inline else found.unpredicted(self.problem, cases)
        report = report.model_copy(update={"missed": tuple(dict.fromkeys((*report.missed, *missed)))})
        return Look(report, found.predictions(self.problem, cases))

    def inspect(self, source: str, cases: Sequence[Case]) -> Inspection:
        """Return what a submission launches. Raises KernelFailure."""
        return inspector.inspect(source, self.problem, cases, self.gpu, self.harness.inspect_timeout_s)


def refusal(report: CompileReport) -> KernelFailure:
    """Return the failure of a kernel that does not compile, or whose code the GPU would refuse."""
    words = report.log.strip().splitlines() or ["no word from the compiler"]
    return KernelFailure(Verdict.COMPILE_ERROR, f"the compiler refused it: {words[0]}", (report.log,))
