"""What a campaign and the hosts of a pool say to each other, as JSON, and what carries it."""

import threading
from collections.abc import Callable
from typing import Any, Literal, Protocol

from pydantic import Field

from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.scientist.roles import CpuInfo


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
