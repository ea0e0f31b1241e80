"""What a campaign and the hosts of a pool tell each other, as JSON."""

from typing import Any, Literal

from pydantic import Field

from kernel_scientist.evaluate.timing.plan import TimedSource
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


class Request(Record):
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


class Reply(Record):
    """What a host did, or why it refuses."""

    refusal: str = ""
    host: Host | None = None
    evaluation: Evaluation | None = None
    confirmation: Confirmation | None = None
    kernel: Kernel | None = None
    """The winner of tuning, if a configuration gained."""
    assembly: dict[str, str] = Field(default_factory=dict)
    """Assembly of the evaluation's code objects by digest."""
