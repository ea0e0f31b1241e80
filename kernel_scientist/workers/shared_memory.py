"""Memory shared by the evaluator and one worker: start barrier, inputs, output buffers, copied outputs.

The worker knows the places of its inputs in advance. The evaluator writes the values just before the row, past the
caches, while the worker's other threads are stopped: the worker cannot compute early, and the data are cold. Guard
bands of random bytes surround the tensors. Values and addresses change independently: a tensor may get a new offset
in its pages.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import BARRIER_BYTES, SLOTS, NativeHarness

if TYPE_CHECKING:
    import torch

LINE = 64
GUARD_BYTES = 256


@dataclass
class TensorPages:
    """Pages for one tensor, and the tensor's current place in them."""

    start: int
    length: int
    size: int
    offset: int = 0
    guard: bytes = b""
    writable: bool = False
    """Whether the tensor is an output buffer."""


class SharedMemory:
    """One worker's shared memory. Not thread-safe; `close` frees it.

    A slot holds the inputs of one call. `SLOTS` slots make a group, such as a case's: the first one has its own memory,
    the others use the same memory as those of other groups, so that a row of calls touches few new pages.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        # Sealed: if a worker could truncate it, reading it would crash the evaluator.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._pages = mmap.mmap(self.descriptor, size, flags=mmap.MAP_SHARED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._rng = random.SystemRandom()
        self._tensors: dict[tuple[int, int], TensorPages] = {}
        self._kept, self._ends = BARRIER_BYTES, dict[int, int]()
        """End of the memory of first slots; by group, end of the shared memory of the others."""
        self._outputs_end = size // 2

    def reset(self) -> None:
        """Wipe the memory for another worker; new pages would cost far more."""
        for start, end in ((0, self._kept), (self.size // 2, max(self._outputs_end, *self._ends.values(), 0))):
            ctypes.memset(self.address + start, 0, end - start)
        self._tensors.clear()
        self._ends.clear()
        self._kept, self._outputs_end = BARRIER_BYTES, self.size // 2

    def close(self) -> None:
        """Free the memory. The mapping lives as long as this object, because views of it may be in use."""
        os.close(self.descriptor)
        self._tensors.clear()

    def place(self, slot: int, index: int, size: int, fresh: bool) -> protocol.Spot:
        """Return the place of a slot's tensor of `size` bytes. Raises SetupError if there is no room."""
        pages = self._tensors.get((slot, index))
        if pages is None or pages.length < size + 2 * GUARD_BYTES:
            length = (-(-(size + 2 * GUARD_BYTES) // mmap.PAGESIZE) + 1) * mmap.PAGESIZE
            pages = self._tensors[slot, index] = TensorPages(self._allocate(slot, length), length, size)
            fresh = True
        if fresh or pages.size != size:
            pages.size, room = size, pages.length - size - 2 * GUARD_BYTES
            pages.offset = pages.start + GUARD_BYTES + LINE * self._rng.randrange(room // LINE + 1)
        return protocol.Spot(pages.offset, pages.start, pages.length)

    def _allocate(self, slot: int, length: int) -> int:
        group, keeps = divmod(slot, SLOTS)
        start = self._kept if keeps == 0 else self._ends.get(group, self.size // 2)
        if start + length > (self.size // 2 if keeps == 0 else self.size):
            raise SetupError(f"inputs need more than {self.size >> 21} MiB, half of harness.memory_mib: raise it")
        if keeps == 0:
            self._kept += length
        else:
            self._ends[group] = start + length
        return start

    def write(
        self, native: NativeHarness, slot: int, index: int, tensor: torch.Tensor | int, writable: bool = False
    ) -> None:
        """Write a tensor's values (or fill it with one byte) at its place, and new guard bands around it.

        writable: whether a kernel may return it.
        """
        pages = self._tensors[slot, index]
        at = self.address + pages.offset
        pages.writable = writable
        if isinstance(tensor, int):
            native.stream_fill(at, tensor, pages.size)
        elif pages.size:
            order = protocol.dense_order(tensor)
            dense = tensor if order is not None else tensor.contiguous()
            native.stream(at, dense.data_ptr(), pages.size)
        pages.guard = self._rng.randbytes(GUARD_BYTES)
        ctypes.memmove(at - GUARD_BYTES, pages.guard, GUARD_BYTES)
        ctypes.memmove(at + pages.size, pages.guard, GUARD_BYTES)

    def outputs(self, total: int) -> int:
        """Return an offset at which `total` bytes of outputs can be copied. Raises MemoryError without room."""
        start = max((*self._ends.values(), self.size // 2))
        if start + total > self.size:
            raise MemoryError(f"with its inputs that is more than {self.size >> 21} MiB, half of harness.memory_mib")
        self._outputs_end = max(self._outputs_end, start + total)
        return start

    def holds(self, offset: int, size: int) -> bool:
        """Whether `size` bytes at `offset` lie in this memory."""
        return offset > 0 and offset + size <= self.size

    def read(self, offset: int, size: int) -> bytearray:
        """Return a copy of bytes of the memory."""
        return bytearray(memoryview(self._pages)[offset : offset + size])

    def is_output_buffer(self, slot: int, start: int, size: int) -> bool:
        """Whether these bytes belong to a tensor of the slot that a kernel may return."""
        return any(s.writable and s.offset <= start and start + size <= s.offset + s.size for s in self._of(slot))

    def intact(self, slot: int) -> bool:
        """Whether the guard bands of a slot's tensors are untouched."""
        return all(
            ctypes.string_at(self.address + at, GUARD_BYTES) == pages.guard
            for pages in self._of(slot)
            for at in (pages.offset - GUARD_BYTES, pages.offset + pages.size)
        )

    def _of(self, slot: int) -> list[TensorPages]:
        return [pages for (owner, _), pages in self._tensors.items() if owner == slot]
