"""Host memory shared by the evaluator and one worker: start barrier, inputs, output buffers, copied outputs.

The worker knows the places of its inputs in advance. The evaluator writes the values just before the row, past the
caches, while the worker's other threads are stopped: the worker cannot compute early, and the data are cold. A GPU's
worker has only its barrier here (`device_memory`).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

from kernel_scientist.workers.native import BARRIER_BYTES, NativeHarness
from kernel_scientist.workers.places import OUTSIDE, Content, Places, StoragePages


class SharedMemory(Places):
    """One worker's shared memory; `close` frees it."""

    LINE = 64
    GUARD_BYTES = 256

    def __init__(self, size: int, native: NativeHarness) -> None:
        super().__init__(size, BARRIER_BYTES)
        self._native = native
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        # Sealed: if a worker could truncate it, reading it would crash the evaluator.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._pages = mmap.mmap(self.descriptor, size, flags=mmap.MAP_SHARED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))

    def reset(self) -> None:
        """See `Places`."""
        for start, end in ((0, self.kept_end), (self.size // 2, self.shared_end)):
            ctypes.memset(self.address + start, 0, end - start)
        self.forget()

    def close(self) -> None:
        """Free the memory. The mapping lives as long as this object, because views of it may be in use."""
        os.close(self.descriptor)
        self.storages.clear()

    def write(self, slot: int, index: int, content: Content) -> None:
        """See `Places`. A protected storage is write-protected in the worker (`untrusted.buffers.Inbox`)."""
        pages = self.storages[slot, index]
        at = self.address + pages.offset
        pages.content = content
        if isinstance(content.values, int):
            self._native.stream_fill(at, content.values, pages.size)
        elif pages.size:
            self._native.stream(at, content.values.data_ptr(), pages.size)
        pages.guard = self.rng.randbytes(self.GUARD_BYTES)
        ctypes.memmove(at - self.GUARD_BYTES, pages.guard, self.GUARD_BYTES)
        ctypes.memmove(at + pages.size, pages.guard, self.GUARD_BYTES)

    def written(self) -> None:
        """See `Places`. Values are written past the caches."""

    def damage(self, slot: int) -> str:
        """See `Places`."""
        intact = all(
            ctypes.string_at(self.address + at, self.GUARD_BYTES) == pages.guard
            for pages in self.of(slot)
            for at in (pages.offset - self.GUARD_BYTES, pages.offset + pages.size)
        )
        return "" if intact and not any(map(self._changed, self.of(slot))) else OUTSIDE

    def _changed(self, pages: StoragePages) -> bool:
        """Whether bytes were changed that may not be, in a storage where others may."""
        content = pages.content
        if content is None or content.fixed is None or isinstance(content.values, int) or not pages.size:
            return False
        import torch

        now = torch.frombuffer(self._pages, dtype=torch.uint8, count=pages.size, offset=pages.offset)
        return bool(((now != content.values) & content.fixed).any())

    def read(self, offset: int, size: int) -> bytearray:
        """See `Places`."""
        return bytearray(memoryview(self._pages)[offset : offset + size])
