"""The steps of evaluating a kernel: build, time, count, tune. Flows run them as Prefect tasks.

Timings and profiles run one at a time per device: all processes of a host share a lock on the device. A Prefect
concurrency limit is not used in addition: see docs/decisions/0003-one-lock-per-device.md.
"""

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kernel_scientist.campaign.pool.evaluator import PoolEvaluator
from kernel_scientist.evaluate.unchanged import unchanged
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict

if TYPE_CHECKING:
    from kernel_scientist.campaign.evaluation_context import EvaluationContext

Arguments = ParamSpec("Arguments")
Measured = TypeVar("Measured")
Function = TypeVar("Function", bound=Callable[..., Any])
Skip = Callable[[Evaluation], Evaluation | None]
DELAYS_S = (1, 5)
"""Delays before a step that failed for reasons other than the kernel is tried again, in seconds."""
progress = logging.getLogger("kernel_scientist.progress")
"""What is being done, for someone who waits."""


def build_kernel(
    context: "EvaluationContext",
    kernel: Kernel,
    cases: tuple[Case, ...] | None = None,
    skip: Skip | None = None,
    base: Evaluation | None = None,
) -> Evaluation:
    """Compile a kernel, then compare its outputs with the reference's on every checking case.

    `cases`: other cases. `skip` gets the compiled kernel's evaluation; if it returns one, the kernel is not executed.
    `base`: the evaluation of the kernel's base, whose machine code needs no other check.
    """
    with context.quiet.building():
        progress.info("compiling %s", kernel.name)
        evaluation = context.evaluator.compile(kernel)
        if evaluation.verdict is not Verdict.OK:
            return evaluation
        if base is not None and (same := unchanged(base, evaluation)) is not None:
            return same
        if skip is not None and (skipped := skip(evaluation)) is not None:
            return skipped
        progress.info("checking %s", kernel.name)
        return context.evaluator.check(kernel, evaluation, cases)


def time_kernel(
    context: "EvaluationContext", kernel: Kernel, measure: Callable[[], Measured], noise: bool = True
) -> Measured:
    """Return what `measure` returns, which times a kernel and others while the device is locked.

    `noise`: measure this machine's noise first if it is due, with the device free for others between two A/A runs.
    """
    if noise and context.is_here and not isinstance(context.evaluator, PoolEvaluator):
        context.evaluator.measure_peaks(context.device)
        context.evaluator.measure_noise(context.device)
    progress.info("waiting for the device")
    with context.device():
        progress.info("timing %s", kernel.name)
        return measure()


def count_kernel(context: "EvaluationContext", kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add the GPU's hardware counters to an evaluation, or the reason why there are none."""
    from kernel_scientist.profile import counting

    assert not isinstance(context.evaluator, PoolEvaluator)
    progress.info("reading hardware counters of %s", kernel.name)
    try:
        with context.device():
            return counting.count(context.evaluator, kernel, timed)
    except InfrastructureError as error:  # counters are optional: no retry
        return counting.without(timed, str(error))


def tune_kernel(kernel: Kernel, search: Callable[[], Kernel | None]) -> Kernel | None:
    """Return what `search` finds: the best other configuration of `kernel`, or None when there was none to try."""
    return search()


def retried(step: Function) -> Function:
    """Return a step that is tried again after an InfrastructureError, as Prefect does with a task."""

    @functools.wraps(step)
    def call(*arguments: Any, **named: Any) -> Any:
        for delay_s in DELAYS_S:
            try:
                return step(*arguments, **named)
            except InfrastructureError as error:
                progress.warning("trying again in %s s: %s", delay_s, error)
                time.sleep(delay_s)
        return step(*arguments, **named)

    return call  # type: ignore[return-value]


def decided(step: Callable[Arguments, Evaluation]) -> Callable[Arguments, Evaluation]:
    """Return a step whose infrastructure error, if it persists after retries, becomes the verdict."""

    @functools.wraps(step)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Evaluation:
        try:
            return step(*arguments, **named)
        except InfrastructureError as error:
            return Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))

    return call


def nobody_asked(context: "EvaluationContext", _question: str) -> str:
    """Return why something is refused that a person has to approve; empty if nobody has to."""
    return "nobody can be asked without a Prefect server" if context.params.validate_.approval else ""


@dataclass(frozen=True)
class Steps:
    """The steps, as functions or as Prefect tasks."""

    build: Callable[..., Evaluation]
    time: Callable[..., Any]
    count: Callable[..., Evaluation]
    tune: Callable[..., Kernel | None] = tune_kernel
    approve: Callable[["EvaluationContext", str], str] = nobody_asked
    """Ask a person whether something may be done, if `validate.approval` is set; return why not, or nothing."""

    def counted(self, context: "EvaluationContext", kernel: Kernel, timed: Evaluation) -> Evaluation:
        """Add hardware counters to the evaluation of a kernel that was timed on a GPU; return others unchanged."""
        from kernel_scientist.profile import counting

        if isinstance(context.evaluator, PoolEvaluator):  # the host has done it
            return timed
        return self.count(context, kernel, timed) if counting.wanted(context.evaluator, timed) else timed


FUNCTIONS = Steps(retried(build_kernel), retried(time_kernel), count_kernel)
"""The steps without Prefect."""
