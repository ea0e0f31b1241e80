"""A GPU's memory shared by the evaluator and one worker: inputs, output buffers, copied outputs.

As in `shared_memory`, the evaluator writes the values just before the row, while the worker's other threads are stopped
and its device work has ended: copies on the device, from inputs that were made there. Then it reads more memory than
the caches hold, so that the data are cold. Afterwards it compares what a kernel may not write with what it wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_scientist.workers.places import OUTSIDE, Content, Places
from kernel_scientist.workers.runtime import DeviceMapping, Runtime

if TYPE_CHECKING:
    import torch

AMD_SWEEP_BYTES, NVIDIA_SWEEP_BYTES = 768 << 20, 512 << 20
"""MI300X's Infinity Cache has 256 MB. H100's L2 has 50 MB in two halves, which may both hold a line."""


class Sweep:
    """Memory of the evaluator that is larger than the GPU's caches."""

    def __init__(self, runtime: Runtime, device: str, size: int = 0) -> None:
        """`size` in bytes; 0: that for this GPU."""
        import torch

        size = size or (AMD_SWEEP_BYTES if torch.version.hip else NVIDIA_SWEEP_BYTES)
        self._runtime, self.words = runtime, torch.zeros(size // 8, dtype=torch.int64, device=device)
        self.device = device

    def __call__(self) -> None:
        """Read the memory, so that the caches hold nothing else.

        It is not written: modified lines would be written back while a kernel is timed.
        """
        self._runtime.release_cache()
        self.words.sum()


class DeviceMemory(Places):
    """One worker's memory on the GPU; `close` frees it."""

    LINE = 512
    """torch's alignment, on which kernels may rely."""
    GUARD_BYTES = 512
    HALF = "{mib} MiB, half of a worker's part of this GPU (harness.memory_mib, an eighth of its memory at most)"

    def __init__(self, size: int, runtime: Runtime, sweep: Sweep) -> None:
        """Raises RuntimeLibraryError if the GPU has too little memory."""
        import torch

        self._mapping, self._sweep, self._runtime = DeviceMapping(runtime, size), sweep, runtime
        super().__init__(self._mapping.size)
        self.descriptor = self._mapping.descriptor
        self._bytes = self._mapping.bytes(0, self.size)
        self._generator = torch.Generator(self._bytes.device)  # not torch's own, which problems seed
        self._generator.seed()
        self._protected: dict[tuple[int, int], torch.Tensor] = {}
        """Values that may not change, as bytes, by slot and number."""

    def reset(self) -> None:
        """See `Places`."""
        self._bytes.zero_()  # all of it: a kernel may have left something anywhere
        self._runtime.synchronize()
        self._protected.clear()
        self.forget()

    def close(self) -> None:
        """Free the memory; tensors over it must not be used any more."""
        self._protected.clear()
        self.storages.clear()
        self._mapping.close()

    def write(self, slot: int, index: int, content: Content) -> None:
        """See `Places`."""
        pages = self.storages[slot, index]
        pages.content, end = content, pages.offset + pages.size
        self._protected.pop((slot, index), None)
        if isinstance(content.values, int):
            self._bytes[pages.offset : end].fill_(content.values)
        elif pages.size:
            values = content.values.to(self._bytes.device)
            self._bytes[pages.offset : end].copy_(values)
            if content.protected or content.fixed is not None:
                self._protected[slot, index] = values
        import torch

        bands = (2, self.GUARD_BYTES)
        device, generator = self._bytes.device, self._generator
        pages.guard = torch.randint(0, 256, bands, dtype=torch.uint8, device=device, generator=generator)
        for band, own in zip(self._bands(pages.offset, end), pages.guard, strict=True):
            band.copy_(own)

    def written(self) -> None:
        """See `Places`. Values are swept out of the caches."""
        self._sweep()
        self._runtime.synchronize()

    def damage(self, slot: int) -> str:
        """See `Places`."""
        import torch

        good: list[Any] = []
        for (owner, index), pages in self.storages.items():
            if owner == slot:
                end = pages.offset + pages.size
                bands = zip(self._bands(pages.offset, end), pages.guard, strict=True)
                good += [(band == own).all() for band, own in bands]
                if (owner, index) in self._protected:
                    same = self._bytes[pages.offset : end] == self._protected[owner, index]
                    fixed = pages.content.fixed if pages.content is not None else None
                    good.append((same if fixed is None else same | ~fixed.to(same.device)).all())
        words = f"it wrote to inputs that it may only read, or {OUTSIDE.removeprefix('it wrote ')}"
        return words if good and not bool(torch.stack(good).all()) else ""

    def read(self, offset: int, size: int) -> torch.Tensor:
        """See `Places`."""
        return self._bytes[offset : offset + size].clone()

    def _bands(self, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._bytes[start - self.GUARD_BYTES : start], self._bytes[end : end + self.GUARD_BYTES]
