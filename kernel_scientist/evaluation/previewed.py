"""The preview of a kernel for a GPU of this host: before it runs, its code is analysed and its time predicted."""

from collections.abc import Sequence

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.gpu.capture.preview import Previewer, refusal
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import UNPREVIEWED, CompileReport, Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.sandbox.failure import KernelFailure, failed


class PreviewedBuilder:
    """Compiles, previews and checks kernels. A kernel that the GPU cannot launch (too much LDS) fails."""

    def __init__(self, evaluator: Evaluator, gpu: Gpu) -> None:
        self.evaluator, self.gpu = evaluator, gpu
        self.previewer = Previewer(evaluator.problem, gpu, evaluator.harness)

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile the kernel, then preview it. A failed preview does not fail a kernel that can run all the same."""
        evaluation = self.evaluator.compile(kernel)
        if evaluation.verdict is not Verdict.OK:
            return evaluation
        try:
            seen = self.previewer.preview(kernel.source, self.evaluator.profile.benchmarks)
        except KernelFailure as failure:
            return _unpreviewed(evaluation, failure)
        found = with_report(evaluation, seen.report, self.gpu)
        if seen.report.ok:
            return found
        why, is_built = refusal(seen.report), kernel.language in ("hip", "cuda")  # torch has built it already
        return failed(why, found) if seen.refused and not is_built else _unpreviewed(evaluation, why)

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Check all cases, or others; see `Evaluator.check`."""
        return self.evaluator.check(kernel, so_far, cases)


def with_report(so_far: Evaluation, report: CompileReport, gpu: Gpu) -> Evaluation:
    """Return the evaluation with a preview's report, and with the architecture that it is of."""
    known = {**so_far.environment, "arch": gpu.arch, "compiler": report.compiler}
    return so_far.model_copy(update={"compile": report, "environment": known})


def _unpreviewed(so_far: Evaluation, why: KernelFailure) -> Evaluation:
    words = f"{UNPREVIEWED}{why.reason}"
    return so_far.model_copy(update={"evidence": (*so_far.evidence, words)})
