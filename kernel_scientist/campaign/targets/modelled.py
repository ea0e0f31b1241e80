"""The targets `model:NAME`: a GPU that this host lacks. Its code is executed here, its times are predicted.

What imports torch, which takes seconds, is imported where it is used: `require` is called before anything starts.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from kernel_scientist.campaign.target import Checked, Procedure, Target, TuningSearch
from kernel_scientist.campaign.targets import on_this_host
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import Bar, Confirmation, Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params

if TYPE_CHECKING:
    from kernel_scientist.evaluation.predicted import PredictedEvaluator

require = on_this_host.require
toolchain = on_this_host.modelled_toolchain


@contextmanager
def opened(params: Params, problem: Problem, address: Address, connect: Connect | None) -> Generator[Target]:
    """Open the evaluator of a modelled GPU."""
    assert address.gpu is not None
    with on_this_host.workers(params, problem, address) as pool:
        from kernel_scientist.evaluation.predicted import PredictedEvaluator

        evaluator = PredictedEvaluator(problem, params.profile, params.harness, pool, address.gpu)
        yield Modelled(params, problem, address, evaluator, address.gpu)


class Modelled(Target):
    """A GPU that is not here: an evaluator that executes code for it, and a model that predicts times."""

    def __init__(
        self, params: Params, problem: Problem, address: Address, evaluator: "PredictedEvaluator", gpu: Gpu
    ) -> None:
        super().__init__(params, problem, address, evaluator.profile, gpu, evaluator.pool.stopped)
        self.builder, self.evaluator, self.gpu = evaluator, evaluator, gpu

    @property
    @override
    def compiler(self) -> str:
        return on_this_host.compiler(self.params.language)

    @override
    def close(self) -> None:
        self.evaluator.pool.close()

    @override
    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        return self.evaluator.time(kernel, so_far)

    @override
    def tune(self, search: TuningSearch) -> Kernel | None:
        from kernel_scientist.campaign.tuning import model_tuner

        return model_tuner.best(self.evaluator, search, self.params.tuning.predictions)

    @override
    def confirmed(
        self,
        procedure: Procedure,
        kernel: Kernel,
        checked: Evaluation,
        others: Sequence[TimedSource],
        baseline: str | None,
    ) -> Confirmation:
        from kernel_scientist.evaluation import confirmation

        return confirmation.unmeasured(self.evaluator.time(kernel, checked), self.gpu.name)

    @override
    def compiled_references(self) -> list[Checked]:
        return []

    @override
    def predicted_references(self, champion: Evaluation) -> list[Bar]:
        from kernel_scientist.gpu.model import references

        names = {one.case for one in champion.predictions}
        cases = [case for case in self.profile.benchmarks if case.name in names]
        return references.predicted(self.problem, cases, self.gpu) if cases else []

    @override
    def bar(self, kernel: Kernel, checked: Evaluation) -> Checked:
        found = self.evaluator.time(kernel, checked)
        predicted_us = found.predicted_us if found.verdict is Verdict.OK else None
        return Bar(name=kernel.name, verdict=found.verdict, reason=found.reason, predicted_us=predicted_us), None

    @override
    def why_not_timed(self, kernel: Kernel) -> str:
        ours, theirs = self.params.language, kernel.language
        return "" if ours == theirs else f"it is written in {theirs}; this target times kernels in {ours}"
