"""What the stand-in for HIP's runtime needs of a simulated GPU."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine.memory import Copy


class MemoryRange(NamedTuple):
    """A part of the device's memory."""

    address: int
    bytes: int


class ArgumentSlot(NamedTuple):
    """Where a kernel's argument lies in its block of arguments."""

    offset: int
    bytes: int


@dataclass(frozen=True)
class Needs:
    """What a kernel needs of the device."""

    registers: int
    lds_bytes: int
    """Without what a launch adds."""
    scratch_bytes: int
    """Of one lane."""
    most_threads: int
    """Of a workgroup."""
    arguments: tuple[ArgumentSlot, ...]
    """The explicit ones, in order."""


@dataclass(frozen=True)
class HostLaunch:
    """A launch by host code. It is done while its caller waits."""

    code: int
    """What `load` returned."""
    kernel: str
    """Its name in the code."""
    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""
    dynamic_lds: int
    arguments: bytes
    """The block of its explicit arguments."""
    cooperative: bool = False
    """Whether its workgroups may wait for each other."""


class Device(Protocol):
    """A simulated GPU. What a function raises is raised again when the host code returns to Python."""

    facts: Facts

    def load(self, code: bytes) -> int:
        """Load assembly, or a code object, and return its number."""
        ...

    def launch(self, launch: HostLaunch) -> None:
        """Execute a kernel."""
        ...

    def symbol(self, code: int, name: str) -> MemoryRange:
        """Return where a variable of the device lies."""
        ...

    def needs(self, code: int, kernel: str) -> Needs:
        """Return what a kernel needs. Raises KeyError if the code has no such kernel."""
        ...

    def resident(self, code: int, kernel: str, threads: int, dynamic_lds: int) -> int:
        """Return how many workgroups of a kernel a compute unit holds."""
        ...

    def allocated(self, address: int, size: int) -> None:
        """Take note of memory that host code allocated. Its content is undefined."""
        ...

    def freed(self, address: int) -> None:
        """Take note that the memory at an address is gone."""
        ...

    def written(self, address: int, size: int) -> None:
        """Take note of bytes that host code defined."""
        ...

    def copied(self, copy: Copy) -> None:
        """Take note of a copy or a fill."""
        ...

    def use(self, begins: bool) -> None:
        """Open the inputs' memory to the runtime, or close it again."""
        ...
