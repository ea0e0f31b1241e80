"""The simulated GPU as the stand-in for HIP's runtime needs it: code, launches and memory of the machine.

Runs in workers: standard library, numpy and what the machine needs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.dispatch import KernelLaunch
from kernel_scientist.gpu.machine.host.device import ArgumentSlot, HostLaunch, MemoryRange, Needs
from kernel_scientist.gpu.machine.host.session import HostError
from kernel_scientist.gpu.machine.input_memory import InputMemory
from kernel_scientist.gpu.machine.listing import KernelDescriptor
from kernel_scientist.gpu.machine.memory import Copy, fill
from kernel_scientist.hardware import occupancy

Grid = tuple[int, int, int]
WAVE = 64
UNWRITTEN = 0xA5
"""The byte in memory that nobody wrote, where a file allocates it while it is imported."""
BINARY = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
"""How code objects begin that are not assembly."""


@dataclass
class Simulated:
    """A `Device` of one process."""

    facts: Facts
    read: Callable[[str], Code]
    """Loads assembly."""
    run: Callable[[KernelLaunch], None]
    """Executes a launch."""
    call: Callable[[], Allocations | None]
    """Returns the memory of the current call; None outside of calls."""
    memory: InputMemory = field(default_factory=InputMemory)
    """The inputs' memory, which is closed to host code."""
    _codes: list[Code] = field(default_factory=list[Code])
    _places: dict[int, int] = field(default_factory=dict[int, int])

    def load(self, code: bytes) -> int:
        """Load assembly. Raises HostError for a code object."""
        if code.startswith(BINARY):
            reason = "code objects are not simulated: give the sources to load_inline"
            raise HostError("hipModuleLoad", reason, is_limit=True)
        self._codes.append(self.read(code.decode(errors="replace")))
        return len(self._codes) - 1

    def launch(self, launch: HostLaunch) -> None:
        """Execute a kernel. Raises HostError for a launch that the device would refuse."""
        kernel = self._kernel(launch.code, launch.kernel)
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        lds = kernel.lds_bytes + launch.dynamic_lds
        if threads > kernel.most_threads:
            reason = f"{kernel.name} has {threads} threads in a block, and was compiled for {kernel.most_threads}"
            raise HostError("hipLaunchKernel", f"{reason}: say __launch_bounds__")
        if lds > self.facts.lds_bytes:
            raise HostError("hipLaunchKernel", f"{kernel.name} needs {lds} bytes of LDS, of {self.facts.lds_bytes}")
        call = self.call()
        if call is None:
            raise HostError("hipLaunchKernel", f"{kernel.name} is launched while the kernel's file is imported")
        for address, size in self._places.items():  # those of earlier calls as well: static buffers
            call.reserve(address, size, f"hipMalloc({size})")
        code, given = self._codes[launch.code], (launch.arguments, launch.dynamic_lds, launch.cooperative)
        self.run(KernelLaunch(code, launch.kernel, launch.grid, launch.block, *given))

    def symbol(self, code: int, name: str) -> MemoryRange:
        """Return where a variable of the device lies."""
        place = self._codes[code].symbol(name)
        if place is None:
            raise HostError("hipGetSymbolAddress", f"the device's code has no variable {name}")
        return MemoryRange(*place)

    def needs(self, code: int, kernel: str) -> Needs:
        """Return what a kernel needs. Raises HostError if the code has no such kernel."""
        found = self._kernel(code, kernel)
        explicit = (ArgumentSlot(a.offset, a.size) for a in found.arguments if not a.kind.startswith("hidden_"))
        registers = found.descriptor.get("next_free_vgpr", 0)
        return Needs(registers, found.lds_bytes, found.scratch_bytes, found.most_threads, tuple(explicit))

    def resident(self, code: int, kernel: str, threads: int, dynamic_lds: int) -> int:
        """Return how many workgroups of a kernel a compute unit holds."""
        found, waves = self._kernel(code, kernel), -(-threads // WAVE)
        registers, lds = found.descriptor.get("next_free_vgpr", 0), found.lds_bytes + dynamic_lds
        return occupancy.resident(self.facts.arch, waves, registers, lds)

    def allocated(self, address: int, size: int) -> None:
        """Allow launches to use memory. Nobody has written it."""
        self._places[address] = size
        if (call := self.call()) is None:
            fill(address, size, UNWRITTEN)
        else:
            call.undefine(address, size)

    def freed(self, address: int) -> None:
        """Forbid launches to use it."""
        if self._places.pop(address, None) is not None and (call := self.call()) is not None:
            call.release(address)

    def written(self, address: int, size: int) -> None:
        """Note that host code defined bytes."""
        if (call := self.call()) is not None:
            call.define(address, size)

    def copied(self, copy: Copy) -> None:
        """Note a copy or a fill by host code. On a device it takes time."""
        if (call := self.call()) is not None:
            call.copied(copy)

    def use(self, begins: bool) -> None:
        """Open the inputs' memory to the runtime, or close it again."""
        self.memory.use() if begins else self.memory.leave()

    def _kernel(self, code: int, name: str) -> KernelDescriptor:
        kernels = self._codes[code].kernels
        if name not in kernels:
            raise HostError("hipLaunchKernel", f"the device's code has no kernel {name}: its pass compiled other text")
        return kernels[name]
