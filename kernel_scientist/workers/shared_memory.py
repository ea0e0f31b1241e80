"""The memory that the verifier shares with one worker: where inputs lie, and buffers that are to be written.

The worker is told where they will be; the values are written by the evaluator, past the caches, just before the call,
when the worker has nothing to do. So nobody can compute ahead, and the data are cold. Between the tensors lie guard
bands of random bytes, which the verifier itself looks after. Values and addresses change independently: a tensor has
two places, at a random offset each time it is placed afresh.
"""

import ctypes
import fcntl
import mmap
import os
import random
from dataclasses import dataclass

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness

LINE = 64
GUARD_BYTES = 256


@dataclass
class Place:
    """Two stretches of pages for one tensor, and where in which of them it lies now."""

    starts: tuple[int, int]
    length: int
    which: int
    offset: int
    guard: bytes = b""
    size: int = 0
    writable: bool = False
    """Whether it is lent for an output."""


class SharedMemory:
    """One worker's inputs. Not thread-safe; `close` frees it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        # Whoever cuts it short ends every process that reads there then, the verifier too.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._pages = mmap.mmap(self.descriptor, size, flags=mmap.MAP_SHARED)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._rng = random.SystemRandom()
        self._places: dict[tuple[int, int], Place] = {}
        self._used = 0

    def close(self) -> None:
        """Give the memory back. The mapping goes with this object: views of it may still be alive."""
        os.close(self.descriptor)
        self._places.clear()

    def place(self, slot: int, index: int, size: int, fresh: bool) -> protocol.Spot:
        """Return where a slot's tensor of `size` bytes will lie. Raises MemoryError when all is used."""
        place = self._places.get((slot, index))
        if place is None or place.size != size:
            length = (-(-(size + 2 * GUARD_BYTES) // mmap.PAGESIZE) + 1) * mmap.PAGESIZE
            if self._used + 2 * length > self.size:
                raise MemoryError(f"inputs of more than {self.size >> 20} MiB (harness.memory_mib)")
            place = Place((self._used, self._used + length), length, 0, 0, size=size)
            self._places[slot, index] = place
            self._used += 2 * length
            fresh = True
        if fresh:
            place.which = 1 - place.which
            room = place.length - size - 2 * GUARD_BYTES
            place.offset = place.starts[place.which] + GUARD_BYTES + LINE * self._rng.randrange(room // LINE + 1)
        return protocol.Spot(place.offset, place.starts[place.which], place.length)

    def write(self, native: NativeHarness, slot: int, index: int, tensor: torch.Tensor | int) -> None:
        """Put values, or one byte everywhere, where the tensor was placed, and new guard bands around it."""
        place = self._places[slot, index]
        at = self._base + place.offset
        place.writable = isinstance(tensor, int)
        if isinstance(tensor, int):
            native.stream_fill(at, tensor, place.size)
        elif place.size:
            order = protocol.dense_order(tensor)
            dense = tensor if order is not None else tensor.contiguous()
            native.stream(at, dense.data_ptr(), place.size)
        place.guard = self._rng.randbytes(GUARD_BYTES)
        ctypes.memmove(at - GUARD_BYTES, place.guard, GUARD_BYTES)
        ctypes.memmove(at + place.size, place.guard, GUARD_BYTES)

    def lent(self, slot: int, start: int, size: int) -> bool:
        """Whether these bytes belong to a tensor of the slot that is there to be written."""
        return any(
            place.offset <= start and start + size <= place.offset + place.size
            for (owner, _), place in self._places.items()
            if owner == slot and place.writable
        )

    def intact(self, slot: int) -> bool:
        """Whether nothing was written beside a slot's tensors."""
        for (owner, _), place in self._places.items():
            at = self._base + place.offset
            if owner == slot and not (
                ctypes.string_at(at - GUARD_BYTES, GUARD_BYTES)
                == place.guard
                == ctypes.string_at(at + place.size, GUARD_BYTES)
            ):
                return False
        return True
