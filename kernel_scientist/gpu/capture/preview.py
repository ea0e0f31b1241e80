"""Previews a GPU kernel before it runs: its code objects, whether they fit on the GPU, its predicted time."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.capture import inspect as inspector
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.toolchains import load_inline
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CompileReport, Prediction
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure


@dataclass(frozen=True)
class Preview:
    """The preview of a kernel."""

    report: CompileReport
    predictions: tuple[Prediction, ...]
    refused: bool = False
    """Whether the compiler or the GPU refuses it. Otherwise "not ok" means: it could not be inspected."""


@dataclass(frozen=True)
class Previewer:
    """Previews kernels of one problem for one GPU, which need not be present."""

    problem: Problem
    gpu: Gpu
    harness: Harness

    def preview(self, source: str, cases: Sequence[Case]) -> "Preview":
        """Return a submission's code objects and its predicted time per case.

        Raises KernelFailure if its process dies, with verdict `infrastructure` if this machine lacks a compiler. If the
        compiler refuses the code, the report is not ok.
        """
        found = self.inspect(source, cases)
        report = load_inline.compiled(found, self.harness.build_timeout_s)
        if not report.ok:
            return Preview(report, (), found.answer.refused or bool(found.answer.inline))
        missed = () if found.answer.inline else found.unpredicted(self.problem, cases)
        report = report.model_copy(update={"missed": tuple(dict.fromkeys((*report.missed, *missed)))})
        return Preview(report, found.predictions(self.problem, cases))

    def inspect(self, source: str, cases: Sequence[Case]) -> Inspection:
        """Return the inspection of a submission. Raises KernelFailure."""
        return inspector.inspect(source, self.problem, cases, self.gpu, self.harness.inspect_timeout_s)


def refusal(report: CompileReport) -> KernelFailure:
    """Return the failure of a kernel that does not compile or that the GPU would refuse."""
    words = report.log.strip().splitlines() or ["no word from the compiler"]
    return KernelFailure(Verdict.COMPILE_ERROR, f"the compiler refused it: {words[0]}", (report.log,))
