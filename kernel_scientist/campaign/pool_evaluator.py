"""The evaluator of a campaign whose device is elsewhere: a host of a pool compiles, checks and times in one request.

Campaign and hosts exchange the records `PoolRequest` and `PoolReply` as JSON.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.problems import find
from kernel_scientist.problems.imports import dvc_digest
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.scientist.roles import CpuInfo

NOT_SENT: dict[str, Any] = {"llm_calls": (), "authors": {}, "attempts": (), "tries": ()}
"""History of a kernel, which no host needs."""


class Host(Record):
    """A host of a pool, and the device that it evaluates kernels on."""

    name: str
    """Its host name."""
    target: Literal["cpu", "cuda", "rocm"]
    device: str
    """The device's model: times of different models are not compared."""
    devices: int = Field(default=1, ge=1)
    """Devices of that kind on the host."""
    cpu: CpuInfo
    peaks: Machine
    """Peak rates of a CPU; those of a GPU come from the table of GPUs."""


class PoolRequest(Record):
    """What a host shall do."""

    operation: Literal["describe", "time", "tune", "confirm"]
    params: dict[str, Any]
    """The campaign's parameters; the host replaces the target by its own."""
    problem_digest: str
    """DVC's digest of the problem's folder: a host that has another version refuses."""
    evaluator_digest: str
    """Digest of the code that determines verdicts and times: a host that has another version refuses."""
    device: str = ""
    """Model that the device must be of; empty: any."""
    kernel: Kernel | None = None
    against: tuple[TimedSource, ...] = ()
    """Sources that are timed beside the kernel."""
    baseline: str | None = None
    """Name of the one that the kernel must beat."""
    seconds: float = 0.0
    """Time for tuning."""


class PoolReply(Record):
    """What a host did, or why it refuses."""

    refusal: str = ""
    host: Host | None = None
    evaluation: Evaluation | None = None
    confirmation: Confirmation | None = None
    kernel: Kernel | None = None
    """The winner of tuning, if a configuration gained."""
    assembly: dict[str, str] = Field(default_factory=dict)
    """Assembly of the evaluation's code objects by digest."""


class Transport(Protocol):
    """Brings requests to a host of the pool and replies back."""

    stopped: threading.Event

    def await_place(self, at_once: bool) -> None:
        """Wait until the pool can take another request; with `at_once` raise DeviceBusyError if it cannot."""
        ...

    def send(self, request: PoolRequest, title: str) -> PoolReply:
        """Return a host's reply. Thread-safe.

        A request whose host dies is sent to another one. Raises InfrastructureError when no host can carry it out,
        SetupError when all refuse, StoppedError once `stopped` is set.
        """
        ...


Connect = Callable[[str], Transport]
"""Returns the transport to a pool of a name. Raises SetupError if there is none."""


class PoolEvaluator:
    """Evaluates kernels of one problem on the hosts of a pool, all of them on one model of device."""

    def __init__(self, params: Params, problem: Problem, transport: Transport) -> None:
        """Ask the pool for a host's description. Raises SetupError."""
        self.params, self.harness, self.transport = params, params.harness, transport
        self._folder, self._problem_digest = problem.folder, dvc_digest.of_folder(problem.folder)
        self.host = self._described()
        self.problem = find(params.problem, "cpu" if self.host.target == "cpu" else "cuda", params.compat)
        self.profile_name, self.profile = params.profile, self.problem.profile(params.profile)

    @property
    def machine(self) -> Machine | None:
        """Peaks of the pool's device; None for a GPU that is in no table."""
        return self.host.peaks if self.host.target == "cpu" else gpus.detected(self.host.device)

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.transport.stopped

    def close(self) -> None:
        """End all requests: they raise StoppedError."""
        self.transport.stopped.set()

    def await_place(self, at_once: bool) -> None:
        """Wait until the pool can take another request; with `at_once` raise DeviceBusyError if it cannot."""
        self.transport.await_place(at_once)

    def with_harness(self, harness: Harness) -> "PoolEvaluator":
        """Return a copy of this evaluator with other settings."""
        other = object.__new__(PoolEvaluator)
        other.__dict__ |= self.__dict__ | {"harness": harness}
        return other

    def forgo_noise(self) -> None:
        """Let hosts measure no noise: `harness.margin` is the margin."""
        self.harness = self.harness.model_copy(update={"noise_runs": 0})

    def reference(self) -> TimedSource:
        """Return the problem's reference as a source to be timed."""
        return TimedSource(name=REFERENCE, source=self.problem.reference_source)

    def compile(self, kernel: Kernel) -> Evaluation:
        """Return an empty evaluation: `time` sends the kernel to a host, which compiles it."""
        return Evaluation(verdict=Verdict.OK)

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Return the evaluation unchanged: `time` sends the kernel to a host, which checks it."""
        return so_far

    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource] = (), baseline: str | None = None
    ) -> Evaluation:
        """Compile and check a kernel on a host and time it there beside others.

        `baseline` names the source that it must beat; default: the last one of `against`.
        """
        if so_far.verdict is not Verdict.OK:
            return so_far
        reply = self._send("time", f"evaluate {kernel.name}", kernel, tuple(against), baseline)
        if reply.evaluation is None:
            raise InfrastructureError("a host of the pool replied without an evaluation")
        return reply.evaluation

    def confirm(self, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None) -> Confirmation:
        """Confirm a kernel on one host."""
        reply = self._send("confirm", f"confirm {kernel.name}", kernel, tuple(others), baseline)
        if reply.confirmation is None:
            raise InfrastructureError("a host of the pool replied without a confirmation")
        return reply.confirmation

    def tune(self, base: Kernel, name: str, seconds: float) -> Kernel | None:
        """Return the best other configuration of a kernel, found by one host in so many seconds; None if none gains."""
        best = self._send("tune", f"tune {base.name}", base, seconds=seconds).kernel
        return best.model_copy(update={"name": name}) if best else None

    def _described(self) -> Host:
        host = self._send("describe", "describe the device").host
        if host is None:
            raise SetupError("a host of the pool replied without a description")
        return host

    def _send(
        self,
        operation: str,
        title: str,
        kernel: Kernel | None = None,
        against: tuple[TimedSource, ...] = (),
        baseline: str | None = None,
        seconds: float = 0.0,
    ) -> PoolReply:
        own = {"harness": self.harness, "problem": self._folder.name}
        params = self.params.model_copy(update=own).model_dump(mode="json", by_alias=True)
        request = PoolRequest(
            operation=operation,  # type: ignore[arg-type]
            params=params,
            problem_digest=self._problem_digest,
            evaluator_digest=environment.evaluator_digest(),
            device=self.host.device if operation != "describe" else "",
            kernel=kernel.model_copy(update=NOT_SENT) if kernel else None,
            against=against,
            baseline=baseline,
            seconds=seconds,
        )
        reply = self.transport.send(request, title)
        for text in reply.assembly.values():
            assembly.put(text)
        return reply
