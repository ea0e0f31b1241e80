"""The targets `cpu`, `cuda` and `rocm`: a device of this host, whose times are measured.

What imports torch, which takes seconds, is imported where it is used: `require` is called before anything starts.
"""

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from kernel_scientist.campaign.target import Builder, Checked, Procedure, Target, Timer, TuningSearch
from kernel_scientist.campaign.targets import on_this_host
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.campaign.tuning import tuner
from kernel_scientist.compilers import build
from kernel_scientist.evaluation.timing.plan import Hold, TimedSource
from kernel_scientist.gpu.model import constants
from kernel_scientist.hardware import gpu, gpus
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems import operators
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Bar, Confirmation, Evaluation
from kernel_scientist.records.kernel import COMPILED, Case, Kernel, Language, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.records.text import number_of

if TYPE_CHECKING:
    from kernel_scientist.evaluation.confirmation import Measurement
    from kernel_scientist.evaluation.evaluator import Evaluator

progress = logging.getLogger("kernel_scientist.progress")
require = on_this_host.require


@contextmanager
def opened(params: Params, problem: Problem, address: Address, connect: Connect | None) -> Generator[Target]:
    """Open the evaluator of a device; a kernel for a GPU in the tables is previewed before it runs."""
    with on_this_host.workers(params, problem, address) as pool:
        from kernel_scientist.evaluation.evaluator import Evaluator
        from kernel_scientist.evaluation.previewed import PreviewedBuilder

        evaluator = Evaluator(problem, params.profile, params.harness, pool)
        listed = gpus.of_device(address.device)
        previewed = PreviewedBuilder(evaluator, listed) if listed is not None and params.language != "cpp" else None
        yield Local(params, problem, address, evaluator, previewed)


def toolchain(language: Language, address: Address) -> str:
    """Return the compiler, and the GPU with its driver and the model that previews kernels on it."""
    if address.device == "cpu":
        return on_this_host.compiler(language)
    import torch

    compiler = build.find(gpu=True).version if language in ("hip", "cuda") else ""
    name, listed = gpus.name_of(address.device), gpus.of_device(address.device)
    fitted = str(constants.of(listed.name)) if listed else ""
    return f"{compiler} {name} {torch.version.hip} {torch.version.cuda} {gpu.state().get('driver', '')} {fitted}"


class Local(Target):
    """A device of this host: an evaluator, and a builder that previews kernels if the device is a known GPU."""

    def __init__(
        self, params: Params, problem: Problem, address: Address, evaluator: "Evaluator", builder: Builder | None = None
    ) -> None:
        super().__init__(params, problem, address, evaluator.profile, evaluator.machine, evaluator.stopped)
        self.evaluator, self.builder = evaluator, builder or evaluator

    @property
    @override
    def compiler(self) -> str:
        return on_this_host.compiler(self.params.language)

    @override
    def close(self) -> None:
        self.evaluator.close()

    @override
    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        return self.evaluator.time(kernel, so_far, against, baseline)

    @override
    def with_harness(self, harness: Harness) -> Timer:
        return self.evaluator.with_harness(harness)

    @override
    def tune(self, search: TuningSearch) -> Kernel | None:
        return tuner.tune(self, search)

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
        from kernel_scientist.evaluation.timing import conditions

        sources, settings = [TimedSource.of(kernel), *others], self.params.validate_
        measure = partial(confirmation.measure, self.evaluator, sources, settings.blocks)
        before = conditions.Load.now()
        rivals, count = ", ".join(other.name for other in others), settings.processes
        told = "confirming %s beside %s, %s of fresh processes, usually one to three minutes"
        progress.info(told, kernel.name, rivals, number_of(count, "set"))
        runs = [self._set(procedure, kernel, measure, number) for number in range(1, count + 1)]
        happened = {"environment": {**checked.environment, **before.until_now()}}
        return confirmation.conclude(self.evaluator, checked.model_copy(update=happened), runs, sources, baseline)

    def _set(
        self, procedure: Procedure, kernel: Kernel, measure: Callable[[], "Measurement"], number: int
    ) -> "Measurement":
        """Return what one set of fresh processes gives; say how long it took if another one follows."""
        began, count = time.monotonic(), self.params.validate_.processes
        run = procedure.time(kernel, measure, f"confirm {kernel.name}, set {number}")
        if number < count:
            took_s = time.monotonic() - began
            progress.info("confirming %s: set %d of %d took %.0f s", kernel.name, number, count, took_s)
        return run

    @override
    def compiled_references(self) -> list[Checked]:
        from kernel_scientist.evaluation import compiled_reference

        progress.debug("compiling the reference by torch.compile")
        try:
            return [compiled_reference.compiled(self.evaluator)]
        except InfrastructureError as error:
            return [(Bar(name=COMPILED, verdict=Verdict.INFRASTRUCTURE, reason=str(error)), None)]

    @override
    def why_not_timed(self, kernel: Kernel) -> str:
        ours, theirs = self.params.language, kernel.language
        if self.address.device != "cpu" or ours == theirs == "cpp":
            return ""
        if theirs == ours:
            return f"{theirs} kernels are not timed on a CPU"
        return f"it is written in {theirs}; this target times kernels in {ours}"

    @override
    def wait_for_quiet(self) -> None:
        from kernel_scientist.evaluation.timing import conditions

        conditions.wait_for_quiet(self.params.harness.quiet_wait_s, self.stopped)

    @property
    @override
    def operators(self) -> Mapping[str, float]:
        of_cpu = self.address.device == "cpu"
        return operators.shares(self.problem, self.profile, self.params.language) if of_cpu else {}

    @override
    def work_for(self, is_idle: Callable[[], bool], noise_limit_s: float) -> None:
        self.evaluator.is_idle, self.evaluator.noise_limit_s = is_idle, noise_limit_s

    @override
    def machine_is_due(self) -> bool:
        return self.evaluator.machine_is_due()

    @override
    def measure_machine(self, hold: Hold) -> None:
        self.evaluator.measure_machine(hold)

    @override
    def forgo_noise(self) -> None:
        self.evaluator.forgo_noise()

    @override
    def is_counted(self, timed: Evaluation) -> bool:
        from kernel_scientist.profile import counting

        return counting.wanted(self.evaluator, timed)

    @override
    def count(self, kernel: Kernel, timed: Evaluation) -> Evaluation:
        from kernel_scientist.profile import counting

        return counting.count(self.evaluator, kernel, timed)

    @property
    @override
    def profiler(self) -> str:
        from kernel_scientist.profile import counting, sampling

        pool = self.evaluator.pool
        found = counting.find() if pool.on_gpu else sampling.find(pool.enclosure == "bubblewrap")
        return "" if isinstance(found, str) else found.name

    @override
    def profiled(self, kernel: Kernel, checked: Evaluation, case: Case) -> Evaluation:
        from kernel_scientist.profile import counting, sampling

        if self.evaluator.pool.on_gpu:
            return counting.count(self.evaluator, kernel, checked, (case,))
        return sampling.sample(self.evaluator, kernel, checked, case)
