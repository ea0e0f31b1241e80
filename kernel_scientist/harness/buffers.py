"""A kernel's inputs in its worker: tensors over memory that the verifier fills. See `shared`.

Where a tensor stays where it was, it stays the same object, so that nothing but its values tells a call from the last.
What a kernel may not write is read-only. On a GPU torch allocates, values come with the message, and what was written
to is found afterwards. Imports only the standard library and torch.
"""

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import Any

import torch

from kernel_scientist.harness import outputs, wire
from kernel_scientist.harness.shim import Shim

GUARD_BYTES = 512
"""On a GPU, on either side; torch's own blocks there begin at such a multiple, and kernels may count on it."""
READ, READ_WRITE = 1, 3
POPULATE_WRITE = 23
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Inbox:
    """The shared memory as the worker sees it."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._pages = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._tensors: dict[tuple[Any, ...], torch.Tensor] = {}

    def decode(self, spec: wire.Header) -> Any:
        """Return the inputs that `spec` describes; their values are not there yet."""
        return wire.decode(spec, [], self._place)

    def _place(self, form: wire.Form, offset: bytearray | int) -> torch.Tensor:
        assert isinstance(offset, int)
        key = (form, offset)
        if key not in self._tensors:
            self._tensors[key] = form.shaped(self._flat(form, offset))
            self._ready(offset, form.bytes, form.writable)
        return self._tensors[key]

    def _flat(self, form: wire.Form, offset: int) -> torch.Tensor:
        if form.bytes == 0:
            return torch.empty(0, dtype=form.dtype)
        return torch.frombuffer(self._pages, dtype=torch.uint8, count=form.bytes, offset=offset).view(form.dtype)

    def _ready(self, offset: int, size: int, writable: bool) -> None:
        """Take the page faults now, and forbid writing where nothing is to be written."""
        start = (self._base + offset) // mmap.PAGESIZE * mmap.PAGESIZE
        length = self._base + offset + size - start
        if length <= 0:
            return
        self._protect(start, length, READ_WRITE)
        if _libc.madvise(start, length, POPULATE_WRITE) != 0:  # Linux before 5.14
            for page in range(start, start + length, mmap.PAGESIZE):
                ctypes.c_char.from_address(page).value = ctypes.c_char.from_address(page).value
        if not writable:
            self._protect(start, length, READ)

    def _protect(self, start: int, length: int, access: int) -> None:
        if _libc.mprotect(start, length, access) != 0:
            raise OSError(ctypes.get_errno(), "mprotect refused")


class GpuInbox:
    """Inputs on a GPU, and what tells their bytes: nothing forbids to write to them there, or beside them."""

    def __init__(self, device: str, shim: Shim) -> None:
        self._shim, self._device = shim, device
        self._kept: dict[int, list[tuple[torch.Tensor, int]]] = {}

    def decode(self, slot: int, spec: wire.Header, buffers: list[bytearray]) -> Any:
        """Return the inputs that a message holds, each between two guard bands of random bytes."""
        kept = self._kept[slot] = []

        def place(form: wire.Form, data: bytearray | int) -> torch.Tensor:
            if isinstance(data, int):
                raise wire.WireError("a place in shared memory, where there is none")
            before, after = os.urandom(GUARD_BYTES), os.urandom(GUARD_BYTES)
            block = torch.frombuffer(bytearray(before + data + after), dtype=torch.uint8).to(self._device)
            inner = block[GUARD_BYTES : GUARD_BYTES + form.bytes]
            parts = ((block[:GUARD_BYTES], before), (block[GUARD_BYTES + form.bytes :], after))
            for part, held in (*parts, *(() if form.writable else ((inner, data),))):
                kept.append((part, self._digest(bytearray(held))))
            return form.shaped(inner.view(form.dtype))

        return wire.decode(spec, buffers, place)

    def untouched(self, slot: int) -> bool:
        """Whether the inputs that a kernel may not write, and what lies beside them all, are what they were."""
        return all(outputs.Snapshot(x, self._shim, {}, on_gpu=True).digest == was for x, was in self._kept[slot])

    def _digest(self, data: bytearray) -> int:
        return self._shim.pin([(outputs.address(data), len(data))] if data else [(0, 0)])


def on_device(device: str) -> Callable[[wire.Form, bytearray | int], torch.Tensor]:
    """Return what places inputs on a GPU: their values are in the message."""
    return lambda form, data: wire.tensor(form, data).to(device)
