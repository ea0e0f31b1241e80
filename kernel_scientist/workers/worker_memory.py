"""The memory of one worker, and the GPU on which the evaluator makes a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kernel_scientist.workers.places import Places
from kernel_scientist.workers.shared_memory import SharedMemory

if TYPE_CHECKING:
    from kernel_scientist.workers.device_memory import DeviceMemory, Sweep
    from kernel_scientist.workers.runtime import Runtime

USUAL_PART, LARGEST_PART = 12, 8
"""A worker's memory is the larger of harness.memory_mib and the one part of the GPU's, and at most the other: some six
workers run at once."""


@dataclass(frozen=True)
class WorkerMemory:
    """Memory that the evaluator shares with one worker."""

    host: SharedMemory
    """With the start barrier."""
    device: DeviceMemory | None = None
    """On a GPU."""

    @property
    def inputs(self) -> Places:
        """The part with inputs and outputs."""
        return self.device or self.host

    @property
    def descriptors(self) -> list[int]:
        """Descriptors by which the worker maps it."""
        return [self.host.descriptor, *([self.device.descriptor] if self.device else [])]

    def reset(self) -> None:
        """Wipe it for another worker."""
        self.host.reset()
        if self.device is not None:
            self.device.reset()

    def close(self) -> None:
        """Free it."""
        self.host.close()
        if self.device is not None:
            self.device.close()


@dataclass(frozen=True)
class EvaluatorsGpu:
    """A GPU in the evaluator's own process: its runtime library, and the memory that sweeps its caches."""

    runtime: Runtime
    sweep: Sweep
    memory_bytes: int

    @classmethod
    def opened(cls, device: str) -> Self:
        """Start the GPU in this process. Raises RuntimeLibraryError."""
        import torch

        from kernel_scientist.workers.device_memory import Sweep
        from kernel_scientist.workers.runtime import Runtime

        torch.zeros(1, device=device)
        runtime = Runtime.loaded()
        return cls(runtime, Sweep(runtime, device), torch.cuda.get_device_properties(device).total_memory)

    def memory(self, size: int) -> DeviceMemory:
        """Return memory for a worker: `size` bytes, or what this GPU has for it (`LARGEST_PART`)."""
        from kernel_scientist.workers.device_memory import DeviceMemory

        size = min(max(size, self.memory_bytes // USUAL_PART), self.memory_bytes // LARGEST_PART)
        return DeviceMemory(size, self.runtime, self.sweep)
