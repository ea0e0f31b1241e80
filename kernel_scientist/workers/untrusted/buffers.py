"""A kernel's inputs in its worker: tensors over memory that the evaluator fills.

A tensor that stays at its address stays the same object, so that only its values distinguish one call from the next.
Imports only the standard library and torch.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import Any

import torch

from kernel_scientist.records.layout import View
from kernel_scientist.sandbox import protocol, storages
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.runtime import DeviceMapping, Runtime

NOTHING, READ, READ_WRITE = 0, 1, 3
POPULATE_WRITE = 23
SMALL = 64 << 10
"""Bytes of an input that is never closed: sizes and offsets that host code reads, in C++ without a copy."""
MOST_OF_GPU = 1 / 3
"""Part of a GPU's memory that a worker may allocate by torch, besides the memory that it shares."""
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Inbox:
    """The worker's view of the host memory (`shared_memory`). Read-only inputs are mapped read-only."""

    def __init__(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        self._pages = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._views = _Views(self._storage, "cpu")
        self._populated = set[tuple[int, int]]()
        """(offset, length) of pages that are already mapped."""
        self._access: dict[tuple[int, int], int] = {}
        """What is allowed on the pages of large inputs."""

    def decode(self, spec: protocol.Header) -> Any:
        """Return the inputs that `spec` describes; their values arrive later."""
        return storages.decode(spec, self._place)

    def forget(self) -> None:
        """Forget which pages hold inputs: others follow."""
        self._access.clear()

    def close(self, closed: bool) -> None:
        """Allow nothing on the pages of large inputs, or what was allowed before."""
        for (start, length), access in self._access.items():
            self._protect(start, length, NOTHING if closed else access)

    def _place(self, leaf: protocol.Header, view: View) -> torch.Tensor:
        spot = storages.Spot(*leaf["place"])
        self._prepare(spot.pages, spot.length, leaf["writable"], view.storage_bytes > SMALL)
        return self._views.at(view, spot)

    def _storage(self, offset: int, size: int) -> torch.UntypedStorage:
        return torch.frombuffer(self._pages, dtype=torch.uint8, count=size, offset=offset).untyped_storage()

    def _prepare(self, offset: int, length: int, writable: bool, large: bool) -> None:
        """Map the pages now, and write-protect read-only inputs, so that a kernel that writes there crashes.

        The protection catches mistakes only, because a kernel can undo it; guard bands and verified outputs decide.
        """
        start = self.address + offset
        if (offset, length) not in self._populated:
            self._populated.add((offset, length))
            self._protect(start, length, READ_WRITE)
            if _libc.madvise(start, length, POPULATE_WRITE) != 0:
                for page in range(start, start + length, mmap.PAGESIZE):  # Linux before 5.14
                    ctypes.c_char.from_address(page).value = ctypes.c_char.from_address(page).value
        access = READ_WRITE if writable else READ
        self._protect(start, length, access)
        if large:
            self._access[start, length] = access

    def _protect(self, start: int, length: int, access: int) -> None:
        if _libc.mprotect(start, length, access) != 0:
            raise OSError(ctypes.get_errno(), "mprotect refused")


class DeviceInbox:
    """The worker's view of the memory on a GPU (`device_memory`).

    The GPU's memory is not write-protected: the evaluator compares read-only inputs and guard bands afterwards.
    """

    def __init__(self, descriptor: int, size: int, device: str, native: NativeHarness) -> None:
        """Map the memory, bind the GPU's functions, and compile the delay: later no program can be started."""
        from kernel_scientist.workers.untrusted import delay  # triton is imported before the fork

        torch.zeros(1, device=device)
        if device != "cpu":  # one kernel must not leave the evaluator without memory
            torch.cuda.set_per_process_memory_fraction(MOST_OF_GPU)
        runtime = Runtime.loaded()
        native.bind_gpu(runtime.addresses())
        kernel = delay.compiled(device)
        native.bind_delay(*kernel[:5])
        self._kept = kernel
        self._mapping = DeviceMapping(runtime, size, descriptor)
        self.address = self._mapping.address
        self._views = _Views(lambda offset, size: self._mapping.bytes(offset, size).untyped_storage(), device)

    def decode(self, spec: protocol.Header) -> Any:
        """Return the inputs that `spec` describes; their values arrive later."""
        return storages.decode(spec, lambda leaf, view: self._views.at(view, storages.Spot(*leaf["place"])))


class _Views:
    """The tensors over a memory. One that comes again at its place is the same object; neighbours share a storage."""

    def __init__(self, storage: Callable[[int, int], torch.UntypedStorage], device: str) -> None:
        """storage: returns `size` bytes at an offset; device: where they are."""
        self._make, self._device = storage, device
        self._storages: dict[tuple[int, int], torch.UntypedStorage] = {}
        self._tensors: dict[tuple[View, int], torch.Tensor] = {}

    def at(self, view: View, spot: storages.Spot) -> torch.Tensor:
        """Return the tensor that is this view of the storage at a place."""
        if (view, spot.offset) not in self._tensors:
            key = spot.offset, view.storage_bytes
            if key not in self._storages:
                empty = torch.empty(0, dtype=torch.uint8, device=self._device)
                self._storages[key] = self._make(*key) if view.storage_bytes else empty.untyped_storage()
            self._tensors[view, spot.offset] = view.over(self._storages[key])
        return self._tensors[view, spot.offset]
