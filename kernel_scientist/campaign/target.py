"""What a target is: where and how the kernels of one problem are built, timed, tuned and confirmed.

A target is opened by the module that its address names (`targets.factory`). It is made of a builder, if kernels are
built on this host, and of whatever times them. Where else its kind is asked for is listed in
docs/decisions/0028-one-target.md.
"""

# ruff: noqa: B027  (what a target has no use for does nothing)

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kernel_scientist.evaluation.timing.plan import Hold, TimedSource
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.evaluation import Bar, Confirmation, Evaluation
from kernel_scientist.records.kernel import COMPILED, REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.scientist.roles import CpuInfo

Measured = TypeVar("Measured")
Checked = tuple[Bar, TimedSource | None]
"""A bar with its source; the source is None if it failed or is not timed there."""
NOT_COMPILED = "the reference is compiled only where this process times kernels"


class Builder(Protocol):
    """Compiles and checks kernels on this host."""

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel."""
        ...

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Compare a compiled kernel's outputs with the reference's on all cases, or on others."""
        ...


class Timer(Protocol):
    """Times kernels."""

    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        """Time a kernel beside others. `baseline` names the one that it must beat; default: the last of `against`."""
        ...


class Procedure(Protocol):
    """The steps of a confirmation, as a flow carries them out: repeated after faults, shown as tasks."""

    def compile(self, kernel: Kernel, cases: tuple[Case, ...]) -> Evaluation:
        """Compile a kernel, and check it on these cases."""
        ...

    def time(self, kernel: Kernel, measure: Callable[[], Measured], title: str, noise: bool = True) -> Measured:
        """Return what `measure` returns while the device is held. `noise`: measure this machine first, if it is due."""
        ...

    def approve(self, question: str) -> Approval:
        """Ask a person, if one is to be asked."""
        ...


@dataclass(frozen=True)
class TuningSearch:
    """The search for the best values of a kernel's tunables."""

    base: Kernel
    name: str
    """The name of the best configuration as a kernel."""
    is_tried: Callable[[str], bool]
    """Whether a source was evaluated before."""
    stop: Callable[[], bool]
    """Whether to try no further configuration."""
    seconds: float
    """Time for it on a target that cannot ask `stop`."""
    building: Hold
    device: Hold


class Target(ABC):
    """A target that is open for one problem."""

    builder: Builder | None = None
    """What compiles and checks kernels on this host; None: they are compiled and checked where they are timed."""
    devices = 1
    """Most kernels that are timed at the same time."""
    repeats = False
    """Whether it repeats a timing that failed, so that a campaign need not."""
    pairs = True
    """Whether sources are timed beside each other in one run."""

    def __init__(
        self,
        params: Params,
        problem: Problem,
        address: Address,
        profile: Profile,
        machine: Machine | None,
        stopped: threading.Event,
    ) -> None:
        """`profile`: the cases. `machine`: peaks of the device; None for a GPU without an entry in the tables.

        `stopped`: set once the work is to end.
        """
        self.params, self.problem, self.address = params, problem, address
        self.profile, self.machine, self.stopped = profile, machine, stopped

    def close(self) -> None:
        """End all work: it raises StoppedError."""
        self.stopped.set()

    @abstractmethod
    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        """Time a kernel beside others (see `Timer`). The evaluation of a failed kernel is returned unchanged."""

    @abstractmethod
    def tune(self, search: TuningSearch) -> Kernel | None:
        """Return the best other configuration of a kernel; None if there is none or none gains."""

    @abstractmethod
    def confirmed(
        self,
        procedure: Procedure,
        kernel: Kernel,
        checked: Evaluation,
        others: Sequence[TimedSource],
        baseline: str | None,
    ) -> Confirmation:
        """Confirm a kernel that is right on every case: time it beside `others`, compare it with `baseline`."""

    def confirm(
        self, procedure: Procedure, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None
    ) -> Confirmation:
        """Check a kernel on every case, then confirm it. Raises InfrastructureError."""
        checked = procedure.compile(kernel, (*self.profile.tests, *self.profile.held_out))
        if checked.verdict is not Verdict.OK:
            return Confirmation.of_failure(checked)
        return self.confirmed(procedure, kernel, checked, others, baseline)

    @property
    def cpu(self) -> CpuInfo:
        """The CPU of the host that times kernels."""
        return CpuInfo.of_this_machine()

    @property
    def operators(self) -> Mapping[str, float]:
        """Shares of a file's operators in the time of its reference, if that is what kernels start from; else empty."""
        return {}

    @property
    def compiler(self) -> str:
        """What compiles kernels, with its version; empty if that is not known here."""
        return ""

    def reference(self) -> TimedSource:
        """Return the problem's reference as a source to be timed."""
        return TimedSource(name=REFERENCE, source=self.problem.reference_source)

    def compiled_references(self) -> list[Checked]:
        """Return the reference compiled by torch.compile, as a bar; none where bars have no times of a device."""
        return [(Bar(name=COMPILED, verdict=None, reason=NOT_COMPILED), None)]

    def predicted_references(self, champion: Evaluation) -> list[Bar]:
        """Return the predicted times of the reference, eager and compiled, on the cases predicted for a champion."""
        return []

    def bar(self, kernel: Kernel, checked: Evaluation) -> Checked:
        """Return a kernel that was checked as a bar. Its source is timed beside the champion, if it is right."""
        bar = Bar(name=kernel.name, verdict=checked.verdict, reason=checked.reason)
        return bar, TimedSource.of(kernel) if checked.verdict is Verdict.OK else None

    def why_not_timed(self, kernel: Kernel) -> str:
        """Return why kernels of a kernel's language are not timed there; empty if they are."""
        return ""

    def with_harness(self, harness: Harness) -> Timer:
        """Return what times kernels by other settings."""
        return self

    def timing_title(self, kernel: Kernel) -> str:
        """Return what is done when a kernel is timed."""
        return f"time {kernel.name}"

    def await_place(self, at_once: bool) -> None:
        """Wait until another kernel can be timed; with `at_once` raise DeviceBusyError if it cannot."""

    def wait_for_quiet(self) -> None:
        """Wait until other programs leave this machine alone, at most `harness.quiet_wait_s`, if it times kernels."""

    def work_for(self, is_idle: Callable[[], bool], noise_limit_s: float) -> None:
        """Work for an engine. `is_idle`: whether the device would be idle after the timing in progress.

        `noise_limit_s`: seconds that a measurement of this machine's noise may take.
        """

    def machine_is_due(self) -> bool:
        """Whether the next comparison with an incumbent measures this machine first."""
        return False

    def measure_machine(self, hold: Hold) -> None:
        """Measure this machine's noise and peaks; `hold` holds the device meanwhile."""

    def forgo_noise(self) -> None:
        """Measure no noise: unless it is known already, `harness.margin` is the margin."""

    def is_counted(self, timed: Evaluation) -> bool:
        """Whether the hardware counters of a kernel that was timed are to be read."""
        return False

    def count(self, kernel: Kernel, timed: Evaluation) -> Evaluation:
        """Add hardware counters to an evaluation; the device is held."""
        return timed

    @property
    def profiler(self) -> str:
        """Name of the program that profiles calls on this host (perf, ncu, rocprofv3); empty if there is none."""
        return ""

    def profiled(self, kernel: Kernel, checked: Evaluation, case: Case) -> Evaluation:
        """Add to a right kernel's evaluation what a profiler finds in calls on a timed case, or why it finds nothing.

        The device is held.
        """
        return checked
