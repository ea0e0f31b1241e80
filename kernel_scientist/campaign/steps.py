"""The steps of a campaign: select, design, write, repair, compile, time, count, tune, record. Flows run them as
Prefect tasks (`tasks.chain`); here are their bodies, and the steps as plain functions.

Timings and profiles run one at a time per device: all processes of a host share a lock on the device. A Prefect
concurrency limit is not used in addition: see docs/decisions/0003-one-lock-per-device.md.
"""

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.ledger import Job
from kernel_scientist.campaign.target import Measured
from kernel_scientist.evaluation.unchanged import unchanged
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox.device_lock import Turn
from kernel_scientist.scientist.proposals import Design, Draft, Lessons, Selection

Arguments = ParamSpec("Arguments")
Function = TypeVar("Function", bound=Callable[..., Any])
Skip = Callable[[Evaluation], Evaluation | None]
DELAYS_S = (1, 5)
"""Delays before a step that failed for reasons other than the kernel is tried again, in seconds."""
progress = logging.getLogger("kernel_scientist.progress")
"""What is being done, for someone who waits. DEBUG: the steps of single kernels. WARNING: what is wrong."""


def compile_kernel(
    bench: Bench,
    kernel: Kernel,
    cases: tuple[Case, ...] | None = None,
    skip: Skip | None = None,
    base: Evaluation | None = None,
) -> Evaluation:
    """Compile a kernel, then compare its outputs with the reference's on every checking case.

    `cases`: other cases. `skip` gets the compiled kernel's evaluation; if it returns one, the kernel is not executed.
    `base`: the evaluation of the kernel's base, whose machine code needs no other check.
    """
    builder = bench.target.builder
    assert builder is not None
    with bench.quiet.building():
        progress.debug("compiling %s", kernel.name)
        evaluation = builder.compile(kernel)
        if evaluation.verdict is not Verdict.OK:
            return evaluation
        if base is not None and (same := unchanged(base, evaluation)) is not None:
            return same
        if skip is not None and (skipped := skip(evaluation)) is not None:
            return skipped
        progress.debug("checking %s", kernel.name)
        return builder.check(kernel, evaluation, cases)


def measure_machine(bench: Bench) -> None:
    """Measure this machine's noise and peaks; the device is free for others between two A/A runs."""
    bench.target.measure_machine(functools.partial(bench.device, "measure this machine's noise and peaks"))


def wait(turn: Turn, still_s: float) -> None:
    """Wait until `turn` holds the device. Raises DeviceBusyError if nothing moves for `still_s` seconds."""
    progress.debug("waiting for the device")
    turn.take(still_s)


def time_kernel(bench: Bench, kernel: Kernel, measure: Callable[[], Measured], turn: Turn | None = None) -> Measured:
    """Return what `measure` returns, which times a kernel and others while the device is locked.

    `turn`: the right to use the device, which may have been taken before; it is given back.
    """
    turn = turn or bench.turn(f"time {kernel.name}")
    with turn:
        if not turn.is_held:
            wait(turn, bench.params.harness.device_wait_s)
        progress.debug("timing %s", kernel.name)
        return measure()


def count_kernel(bench: Bench, kernel: Kernel, timed: Evaluation) -> Evaluation:
    """Add the GPU's hardware counters to an evaluation, or the reason why there are none."""
    from kernel_scientist.profile import counting

    progress.debug("reading hardware counters of %s", kernel.name)
    try:
        with bench.device(f"count {kernel.name}"):
            return bench.target.count(kernel, timed)
    except InfrastructureError as error:  # counters are optional: no retry
        return counting.without(timed, str(error))


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


def infrastructure_as_verdict(step: Callable[Arguments, Evaluation]) -> Callable[Arguments, Evaluation]:
    """Return a step whose infrastructure error, if it persists after retries, becomes the verdict."""

    @functools.wraps(step)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Evaluation:
        try:
            return step(*arguments, **named)
        except InfrastructureError as error:
            return Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error))

    return call


class Experimenter(Protocol):
    """Who selects, designs, writes and records: a campaign."""

    params: Params

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        ...

    def select(self, generation: int) -> Selection:
        """Choose base and reference kernel of a generation."""
        ...

    def design(self, generation: int, selection: Selection) -> Design:
        """List avenues and plans for the base."""
        ...

    def distil(self, generation: int) -> Lessons:
        """Return the findings up to a generation, the new ones added."""
        ...

    def draft(self, job: Job) -> Draft:
        """Implement a job's experiment."""
        ...

    def redraft(self, job: Job, failed: Trial) -> Draft | None:
        """Repair a kernel that failed; None if the agent does not repair."""
        ...

    def store_kernels(self, trials: Sequence[Trial]) -> None:
        """Write kernels to the store."""
        ...


class Steps:
    """The steps as plain functions. `tasks.chain.Chain` overrides those that are Prefect tasks."""

    def select(self, campaign: Experimenter, generation: int) -> Selection:
        """Choose base and reference kernel of a generation."""
        return campaign.select(generation)

    def design(self, campaign: Experimenter, generation: int, selection: Selection) -> Design:
        """List avenues and plans for the base of a generation."""
        return campaign.design(generation, selection)

    def summarise(self, campaign: Experimenter, generation: int) -> Lessons:
        """Return the findings, the new ones added."""
        return campaign.distil(generation)

    def write(self, campaign: Experimenter, job: Job) -> Draft:
        """Implement a job's experiment."""
        return campaign.draft(job)

    def repair(self, campaign: Experimenter, job: Job, failed: Trial) -> Draft | None:
        """Repair a kernel that failed."""
        return campaign.redraft(job, failed)

    def compile(
        self,
        bench: Bench,
        kernel: Kernel,
        cases: tuple[Case, ...] | None = None,
        skip: Skip | None = None,
        base: Evaluation | None = None,
    ) -> Evaluation:
        """Compile and check a kernel (see `build`), unless that is done where it is timed."""
        if bench.target.builder is None:
            return Evaluation(verdict=Verdict.OK)
        return self.build(bench, kernel, cases, skip, base)

    def build(
        self,
        bench: Bench,
        kernel: Kernel,
        cases: tuple[Case, ...] | None = None,
        skip: Skip | None = None,
        base: Evaluation | None = None,
    ) -> Evaluation:
        """Compile and check a kernel on this host; see `compile_kernel`."""
        return retried(compile_kernel)(bench, kernel, cases, skip, base)

    def time(
        self,
        bench: Bench,
        kernel: Kernel,
        measure: Callable[[], Measured],
        title: str = "",
        noise: bool = True,
    ) -> Measured:
        """Return what `measure` returns, while the device is locked.

        `title`: a name of the step, if it does more than time the kernel. `noise`: measure this machine first, if it
        is due.
        """
        if noise and bench.target.machine_is_due():
            measure_machine(bench)
        return retried(time_kernel)(bench, kernel, measure, bench.turn(title or bench.target.timing_title(kernel)))

    def take(self, turn: Turn, still_s: float, title: str) -> None:
        """Take a turn at a device; `still_s` as for `wait`. `title`: a name of the waiting."""
        wait(turn, still_s)

    def count(self, bench: Bench, kernel: Kernel, timed: Evaluation) -> Evaluation:
        """Add hardware counters to the evaluation of a kernel that was timed."""
        return count_kernel(bench, kernel, timed)

    def tune(self, bench: Bench, kernel: Kernel, search: Callable[[], Kernel | None], name: str) -> Kernel | None:
        """Return what `search` finds, the best other configuration of `kernel`; None when there was none to try.

        `name`: the name that the configuration will have as a kernel.
        """
        return search()

    def record(self, campaign: Experimenter, trials: Sequence[Trial]) -> None:
        """Write kernels to the store."""
        campaign.store_kernels(trials)

    def approve(self, bench: Bench, question: str) -> Approval:
        """Ask a person whether something may be done, if `validate.approval` is set."""
        is_asked = bench.params.validate_.approval
        return Approval(refusal="nobody can be asked without a Prefect server" if is_asked else "")

    def counted(self, bench: Bench, kernel: Kernel, timed: Evaluation) -> Evaluation:
        """Add hardware counters to the evaluation of a kernel that was timed on a GPU; return others unchanged."""
        return self.count(bench, kernel, timed) if bench.target.is_counted(timed) else timed


FUNCTIONS = Steps()
"""The steps without Prefect."""
