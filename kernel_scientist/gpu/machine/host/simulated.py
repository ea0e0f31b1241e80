"""The simulated GPU as the stand-in for HIP's runtime needs it: code, launches and memory of the machine.

Runs in workers: standard library, numpy and what the machine needs.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_scientist.gpu.capture.facts import Facts
from kernel_scientist.gpu.machine.host.device import Argument, Launch, Needs, Place
from kernel_scientist.gpu.machine.host.session import HostError
from kernel_scientist.gpu.machine.launch import Code, Memory
from kernel_scientist.gpu.machine.listing import Kernel
from kernel_scientist.hardware import occupancy

Grid = tuple[int, int, int]
WAVE = 64
BINARY = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
"""How code objects begin that are not assembly."""


@dataclass
class Simulated:
    """A `Device` of one process."""

    facts: Facts
    read: Callable[[str], Code]
    """Loads assembly."""
    run: Callable[[Code, str, Grid, Grid, bytes, int, bool], None]
    """Executes a launch: code, kernel, workgroups, threads of one, explicit arguments, bytes of dynamic LDS, and
    whether its workgroups may wait for each other."""
    memory: Callable[[], Memory | None]
    """What launches of the current call may use; None outside of calls."""
    pattern: int = 0
    """The byte that memory holds which nobody wrote."""
    _codes: list[Code] = field(default_factory=list[Code])
    _places: dict[int, int] = field(default_factory=dict[int, int])

    def load(self, code: bytes) -> int:
        """Load assembly. Raises HostError for a code object."""
        if code.startswith(BINARY):
            reason = "code objects are not simulated: give the sources to load_inline"
            raise HostError("hipModuleLoad", reason, is_limit=True)
        self._codes.append(self.read(code.decode(errors="replace")))
        return len(self._codes) - 1

    def launch(self, launch: Launch) -> None:
        """Execute a kernel. Raises HostError for a launch that the device would refuse."""
        kernel = self._kernel(launch.code, launch.kernel)
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        lds = kernel.lds_bytes + launch.dynamic_lds
        if threads > kernel.most_threads:
            reason = f"{kernel.name} has {threads} threads in a block, and was compiled for {kernel.most_threads}"
            raise HostError("hipLaunchKernel", f"{reason}: say __launch_bounds__")
        if lds > self.facts.lds_bytes:
            raise HostError("hipLaunchKernel", f"{kernel.name} needs {lds} bytes of LDS, of {self.facts.lds_bytes}")
        memory = self.memory()
        if memory is None:
            raise HostError("hipLaunchKernel", f"{kernel.name} is launched while the kernel's file is imported")
        for address, size in self._places.items():  # those of earlier calls as well: static buffers
            memory.add(address, size)
        code, args = self._codes[launch.code], launch.arguments
        self.run(code, launch.kernel, launch.grid, launch.block, args, launch.dynamic_lds, launch.cooperative)

    def symbol(self, code: int, name: str) -> Place:
        """Return where a variable of the device lies."""
        place = self._codes[code].symbol(name)
        if place is None:
            raise HostError("hipGetSymbolAddress", f"the device's code has no variable {name}")
        return Place(*place)

    def needs(self, code: int, kernel: str) -> Needs:
        """Return what a kernel needs. Raises HostError if the code has no such kernel."""
        found = self._kernel(code, kernel)
        explicit = (Argument(a.offset, a.size) for a in found.arguments if not a.kind.startswith("hidden_"))
        registers = found.descriptor.get("next_free_vgpr", 0)
        return Needs(registers, found.lds_bytes, found.scratch_bytes, found.most_threads, tuple(explicit))

    def resident(self, code: int, kernel: str, threads: int, dynamic_lds: int) -> int:
        """Return how many workgroups of a kernel a compute unit holds."""
        found, waves = self._kernel(code, kernel), -(-threads // WAVE)
        registers, lds = found.descriptor.get("next_free_vgpr", 0), found.lds_bytes + dynamic_lds
        return occupancy.resident(self.facts.arch, waves, registers, lds)

    def allocated(self, address: int, size: int) -> None:
        """Allow launches to use memory, and fill it with the pattern."""
        self._places[address] = size
        ctypes.memset(address, self.pattern, size)

    def freed(self, address: int) -> None:
        """Forbid launches to use it."""
        if self._places.pop(address, None) is not None and (memory := self.memory()) is not None:
            memory.remove(address)

    def _kernel(self, code: int, name: str) -> Kernel:
        kernels = self._codes[code].kernels
        if name not in kernels:
            raise HostError("hipLaunchKernel", f"the device's code has no kernel {name}: its pass compiled other text")
        return kernels[name]
