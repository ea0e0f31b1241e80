"""A device for tests that keeps what it is asked and executes nothing."""

from dataclasses import dataclass, field

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine.host.device import ArgumentSlot, HostLaunch, MemoryRange, Needs
from kernel_scientist.gpu.machine.memory import Copy

FACTS = Facts("AMD Instinct MI300X", "gfx942", 304, 64, 65536, 4 << 20, 1 << 30)


@dataclass
class Recorder:
    """What host code did."""

    facts: Facts = FACTS
    layout: tuple[ArgumentSlot, ...] = ()
    codes: list[bytes] = field(default_factory=list[bytes])
    launches: list[HostLaunch] = field(default_factory=list[HostLaunch])
    memory: dict[int, int] = field(default_factory=dict[int, int])
    variables: dict[str, MemoryRange] = field(default_factory=dict[str, MemoryRange])
    written_to: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    fault: Exception | None = None

    def load(self, code: bytes) -> int:
        self.codes.append(code)
        return len(self.codes)

    def launch(self, launch: HostLaunch) -> None:
        self.launches.append(launch)
        if self.fault is not None:
            raise self.fault

    def symbol(self, code: int, name: str) -> MemoryRange:
        return self.variables[name]

    def needs(self, code: int, kernel: str) -> Needs:
        return Needs(64, 1024, 16, 256, self.layout)

    def resident(self, code: int, kernel: str, threads: int, dynamic_lds: int) -> int:
        return 3 if dynamic_lds < 60_000 else 0

    def allocated(self, address: int, size: int) -> None:
        assert all(address + size <= start or start + length <= address for start, length in self.memory.items())
        self.memory[address] = size

    def freed(self, address: int) -> None:
        del self.memory[address]

    def written(self, address: int, size: int) -> None:
        self.written_to.append((address, size))

    def copied(self, copy: Copy) -> None:
        """Bytes that it defined are recorded by `written`."""

    def use(self, begins: bool) -> None:
        """Its memory is always open."""
