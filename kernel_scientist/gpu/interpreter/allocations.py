"""Live memory and what is known of every element of it: defined or not, and who touched it in this launch.

An allocation is a torch storage. Pointers of launch arguments carry a tag in their upper 16 bits, which survives all
pointer arithmetic, so an address that has left its tensor is known as such even where another tensor lies there.
Imports only numpy and torch.
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
"""So that a tagged address is still a positive int64."""


class Allocation:
    """One storage, with shadows by granule (as a rule, an element); a shadow is None as long as nothing needs it."""

    def __init__(self, storage: torch.UntypedStorage, grain: int, writable: bool) -> None:
        self.base, self.size, self.grain = storage.data_ptr(), storage.nbytes(), grain
        self.writable = writable
        self.weak = StorageWeakRef(storage)
        self.codes: Array | None = None
        """int16: 0 defined, NEVER_WRITTEN, or the origin of an undefined value."""
        self.writer: Array | None = None
        """int32: who stored last, negative where the store changed nothing. Programs are numbered through launches."""
        self.reader: Array | None = None
        self.updater: Array | None = None
        """Who loaded, or updated atomically; `everyone` where more than one did."""

    @classmethod
    def nothing(cls, address: int) -> "Allocation":
        """An allocation of no bytes, for an address that lies in none."""
        self = cls(torch.UntypedStorage(0), 1, writable=False)
        self.base = address
        return self

    @property
    def granules(self) -> int:
        """How many there are."""
        return -(-self.size // self.grain)

    def memory(self) -> Array:
        """The bytes themselves."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.base))

    def shadow(self, name: str) -> Array:
        """Return a shadow, made where there is none."""
        if (found := getattr(self, name)) is None:
            found = np.zeros(self.granules, np.int16 if name == "codes" else np.int32)
            setattr(self, name, found)
        return found

    def granules_of(self, offsets: Array, width: int) -> Array:
        """Return the granules [lane, :] of accesses of `width` bytes; the grain becomes finer where it must."""
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

        A view: writing to it writes the shadow.
        """
        if self.codes is None or tensor.numel() == 0:
            return None
        if tensor.element_size() < self.grain:
            self._refine(tensor.element_size())
        per = tensor.element_size() // self.grain
        shape, strides = (*tensor.shape, per), (*(s * per for s in tensor.stride()), 1)
        return torch.as_strided(torch.from_numpy(self.codes), shape, strides, tensor.storage_offset() * per)

    def define(self, tensor: torch.Tensor) -> None:
        """Something wrote the tensor."""
        if (codes := self.codes_of(tensor)) is not None:
            codes.zero_()

    def undefine(self, tensor: torch.Tensor) -> None:
        """Nothing has written the tensor yet."""
        self.shadow("codes")
        if (codes := self.codes_of(tensor)) is not None:
            codes.fill_(NEVER_WRITTEN)


class State:
    """The bytes and codes of an allocation at one moment."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation, self.bytes, self.grain = allocation, allocation.memory().copy(), allocation.grain
        self.codes = None if allocation.codes is None else allocation.codes.copy()

    def restore(self) -> None:
        """Make it so again."""
        self.allocation.memory()[:] = self.bytes
        self.allocation.codes = None if self.codes is None else self.codes.copy()
        if self.codes is not None and self.grain != self.allocation.grain:
            times = self.grain // self.allocation.grain
            self.allocation.codes = np.repeat(self.codes, times)[: self.allocation.granules]


class Allocations:
    """All storages that are known, by address."""

    def __init__(self) -> None:
        self._known: dict[int, Allocation] = {}
        self._tags: dict[tuple[int, int, int], int] = {}
        self._tagged: list[tuple[Allocation, int, int] | None] = [None]

    def __iter__(self) -> Any:
        return iter(list(self._known.values()))

    def of(self, tensor: torch.Tensor, writable: bool = True) -> Allocation | None:
        """Return a tensor's allocation, made known (as defined) where it was not; None for an empty one."""
        if (storage := _storage(tensor)) is None:
            return None
        base = storage.data_ptr()
        known = self._known.get(base)
        if known is None or known.weak.cdata != _identity(storage) or known.size != storage.nbytes():
            known = self._known[base] = Allocation(storage, tensor.element_size(), writable)
        return known

    def known(self, tensor: torch.Tensor) -> Allocation | None:
        """Return a tensor's allocation if it is known."""
        if (storage := _storage(tensor)) is None:
            return None
        found = self._known.get(storage.data_ptr())
        return found if found is not None and found.weak.cdata == _identity(storage) else None

    def tag(self, tensor: torch.Tensor) -> int:
        """Return the tag of pointers to this tensor; 0, which means none, when there are too many."""
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
        """Return the live allocation that an untagged address lies in: one that the submission made an integer."""
        for again in (False, True):
            if again:
                for found in [value for value in gc.get_objects() if type(value) is torch.Tensor]:
                    self.of(found)
            for allocation in self:
                if allocation.base <= address < allocation.base + allocation.size and not allocation.weak.expired():
                    return allocation
        return None


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return a tensor's storage if it has one in this process's memory: sparse, meta and empty ones have not."""
    if tensor.layout is not torch.strided:
        return None
    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":  # the storage's: the tensor may pretend to lie on a GPU
        return None
    return storage if storage.nbytes() > 0 and storage.data_ptr() != 0 else None


def _identity(storage: torch.UntypedStorage) -> int:
    """Tell storages apart that lay at one address one after the other."""
    return storage._cdata  # pyright: ignore[reportPrivateUsage]
