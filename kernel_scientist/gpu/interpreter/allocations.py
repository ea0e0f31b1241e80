"""Tracks live memory: for every element, whether it is defined, and which program accessed it in this launch.

An allocation is a torch storage. Pointers of launch arguments carry a tag in their upper 16 bits, which survives
pointer arithmetic, so an address outside of its tensor is detected even if it lies in another one. Imports only numpy
and torch.
"""

import ctypes
import gc
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from kernel_scientist.gpu.interpreter.defect import NEVER_WRITTEN

Array = np.ndarray[Any, Any]
TAG_SHIFT = 48
MOST_TAGS = 1 << 15
"""A tagged address must remain a positive int64."""


class Allocation:
    """One storage with shadow arrays per granule (usually an element); a shadow is None until it is needed."""

    def __init__(self, storage: torch.UntypedStorage, grain: int, writable: bool) -> None:
        self.base, self.size, self.grain = storage.data_ptr(), storage.nbytes(), grain
        self.writable = writable
        self.weak = StorageWeakRef(storage)
        self.codes: Array | None = None
        """int16: 0 defined, NEVER_WRITTEN, or the origin of an undefined value."""
        self.writer: Array | None = None
        """int32: number of the program that stored last, negative if the store changed nothing."""
        self.reader: Array | None = None
        self.updater: Array | None = None
        """Number of the program that loaded, or updated atomically; `everyone` if more than one did."""

    @classmethod
    def nothing(cls, address: int) -> "Allocation":
        """Return an empty allocation, for an address outside of all allocations."""
        self = cls(torch.UntypedStorage(0), 1, writable=False)
        self.base = address
        return self

    @property
    def granules(self) -> int:
        """Return the number of granules."""
        return -(-self.size // self.grain)

    def memory(self) -> Array:
        """Return the bytes."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.base))

    def shadow(self, name: str) -> Array:
        """Return a shadow; create it if there is none."""
        if (found := getattr(self, name)) is None:
            found = np.zeros(self.granules, np.int16 if name == "codes" else np.int32)
            setattr(self, name, found)
        return found

    def granules_of(self, offsets: Array, width: int) -> Array:
        """Return the granules [lane, :] of accesses of `width` bytes; reduce the granule size if necessary."""
        if width != self.grain or self.grain > 1:
            odd = offsets & (self.grain - 1)
            if width < self.grain or odd.any():
                self._refine(1 if (offsets & (width - 1)).any() else min(width, self.grain))
        first = offsets >> (self.grain.bit_length() - 1)
        if width <= self.grain:
            return first[:, None]
        return first[:, None] + np.arange(width // self.grain)

    def _refine(self, grain: int) -> None:
        times = self.grain // grain
        self.grain = grain
        for name in ("codes", "writer", "reader", "updater"):
            if (shadow := getattr(self, name)) is not None:
                setattr(self, name, np.repeat(shadow, times)[: self.granules])

    def codes_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the codes of a tensor's elements, [*shape, granules of an element], or None if all are defined.

        The result is a view: writing to it writes the shadow.
        """
        if self.codes is None or tensor.numel() == 0:
            return None
        if tensor.element_size() < self.grain:
            self._refine(tensor.element_size())
        per = tensor.element_size() // self.grain
        shape, strides = (*tensor.shape, per), (*(s * per for s in tensor.stride()), 1)
        return torch.as_strided(torch.from_numpy(self.codes), shape, strides, tensor.storage_offset() * per)

    def define(self, tensor: torch.Tensor) -> None:
        """Mark the tensor as written."""
        if (codes := self.codes_of(tensor)) is not None:
            codes.zero_()

    def undefine(self, tensor: torch.Tensor) -> None:
        """Mark the tensor as never written."""
        self.shadow("codes")
        if (codes := self.codes_of(tensor)) is not None:
            codes.fill_(NEVER_WRITTEN)


class State:
    """A snapshot of an allocation's bytes and codes."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation, self.bytes, self.grain = allocation, allocation.memory().copy(), allocation.grain
        self.codes = None if allocation.codes is None else allocation.codes.copy()

    def restore(self) -> None:
        """Restore the snapshot."""
        self.allocation.memory()[:] = self.bytes
        self.allocation.codes = None if self.codes is None else self.codes.copy()
        if self.codes is not None and self.grain != self.allocation.grain:
            times = self.grain // self.allocation.grain
            self.allocation.codes = np.repeat(self.codes, times)[: self.allocation.granules]


class Allocations:
    """All known storages, by address."""

    def __init__(self) -> None:
        self._known: dict[int, Allocation] = {}
        self._tags: dict[tuple[int, int, int], int] = {}
        self._tagged: list[tuple[Allocation, int, int] | None] = [None]

    def __iter__(self) -> Any:
        return iter(list(self._known.values()))

    def of(self, tensor: torch.Tensor, writable: bool = True) -> Allocation | None:
        """Return a tensor's allocation; register it as defined if it is unknown. None for an empty tensor."""
        if (storage := _storage(tensor)) is None:
            return None
        base = storage.data_ptr()
        known = self._known.get(base)
        if known is None or known.weak.cdata != _identity(storage) or known.size != storage.nbytes():
            known = self._known[base] = Allocation(storage, tensor.element_size(), writable)
        return known

    def known(self, tensor: torch.Tensor) -> Allocation | None:
        """Return a tensor's allocation if it is registered."""
        if (storage := _storage(tensor)) is None:
            return None
        found = self._known.get(storage.data_ptr())
        return found if found is not None and found.weak.cdata == _identity(storage) else None

    def tag(self, tensor: torch.Tensor) -> int:
        """Return the tag of pointers to this tensor; 0 (no tag) if there are too many."""
        allocation = self.of(tensor)
        if allocation is None:
            return 0
        key = (id(allocation), tensor.data_ptr(), tensor.element_size())
        if key not in self._tags:
            if len(self._tagged) >= MOST_TAGS:
                return 0
            self._tags[key] = len(self._tagged)
            self._tagged.append((allocation, tensor.data_ptr(), tensor.element_size()))
        return self._tags[key]

    def tagged(self, tag: int) -> tuple[Allocation, int, int] | None:
        """Return the allocation, the tensor's address and its element's size."""
        return self._tagged[tag] if 0 < tag < len(self._tagged) else None

    def containing(self, address: int) -> Allocation | None:
        """Return the live allocation of an untagged address, such as one that the submission made from an integer."""
        for again in (False, True):
            if again:
                for found in [value for value in gc.get_objects() if type(value) is torch.Tensor]:
                    self.of(found)
            for allocation in self:
                if allocation.base <= address < allocation.base + allocation.size and not allocation.weak.expired():
                    return allocation
        return None


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return a tensor's storage if it is in this process's memory; sparse, meta and empty tensors have none."""
    if tensor.layout is not torch.strided:
        return None
    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":  # of the storage: the tensor may report the fake GPU
        return None
    return storage if storage.nbytes() > 0 and storage.data_ptr() != 0 else None


def _identity(storage: torch.UntypedStorage) -> int:
    """Return a number that distinguishes storages that successively had the same address."""
    return storage._cdata  # pyright: ignore[reportPrivateUsage]
