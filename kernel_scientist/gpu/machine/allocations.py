"""The memory that a submission's launches may use: its inputs, and what torch allocates while it runs.

Memory that nobody wrote holds a pattern of bytes, so that a kernel that relies on it is wrong here as well. Runs in
workers: standard library, numpy and torch only.
"""

import ctypes
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_scientist.gpu.machine.counts import MOST_OPERATIONS, MOST_STORAGES
from kernel_scientist.gpu.machine.memory import Memory, fill

EMPTY = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
"""Operations that return memory that nobody wrote."""
NAMES = {"_to_copy": "to", "constant_pad_nd": "pad", "index": "__getitem__", "index_put_": "__setitem__"}
"""Names that Python has for torch's own operations (`model.predict.STREAMING`)."""
FETCHES = frozenset(("_local_scalar_dense", "nonzero", "equal", "is_nonzero"))
"""Operations that bring values to the host."""
NOWHERE = "0"
"""Stands for the storages of an operation beyond that number (`model.predict.NOWHERE`)."""


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Return every tensor in a value, also in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors(each)


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return address and size of what a tensor's elements span."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size()


def runs(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Return address and size of each run of bytes that a tensor's elements fill; of one without gaps a single run."""
    if tensor.numel() == 0:
        return []
    size = tensor.element_size()
    wide = [(s * size, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1 and s]
    places = np.zeros(1, np.int64)
    for stride, count in sorted(wide):
        if stride <= size and len(places) == 1:
            size += (count - 1) * stride
        else:
            places = (places[None] + stride * np.arange(count)[:, None]).reshape(-1)
    return [(tensor.data_ptr() + int(place), size) for place in places]


def is_view(operation: Any) -> bool:
    """Whether an operation computes nothing: its results alias what it was given, and it writes nothing."""
    return not _writes(operation) and any(one.alias_info is not None for one in operation._schema.returns)


def _writes(operation: Any) -> bool:
    """Whether an operation writes to what it was given."""
    return any(one.alias_info is not None and one.alias_info.is_write for one in operation._schema.arguments)


class Allocations(TorchDispatchMode):
    """Knows the memory of one call. Within the context it follows what torch allocates."""

    def __init__(self, data: Any, writable: Collection[int], pattern: int) -> None:
        """`data`: the inputs, of which those at `writable` may be written. `pattern`: a byte."""
        super().__init__()
        self.pattern = pattern
        self.launches: Callable[[], int] = int
        """Returns the number of launches so far."""
        self.operations: list[dict[str, Any]] = []
        """What torch computed, as `TorchOperation` without the case: on a device each is a kernel of its own."""
        self.written = set[int]()
        """Storages that operations of torch wrote: there one cannot see what launches wrote."""
        self._storages: dict[int, StorageWeakRef] = {}
        self._memory = Memory()
        items = list(data) if isinstance(data, list | tuple) else [data]
        self._given = {t.untyped_storage().data_ptr() for item in items for t in tensors(item)}
        """Storages of the inputs, of which they may be views."""
        self._inputs = dict[int, tuple[int, int]]()
        for position, item in enumerate(items):
            for place, size in map(extent, tensors(item)):
                longest = max(size, self._inputs.get(place, (place, 0))[1])  # two of them may begin at one place
                self._inputs[place] = place, longest
                self._memory.add(place, longest, position in writable or self._memory.may_write(place))
        self.names = {extent(t)[0]: f"input {n}" for n, item in enumerate(items) for t in tensors(item)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation of torch; remember what it allocated."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        if name not in EMPTY and not is_view(func):
            used = [*tensors(args), *tensors(kwargs or {})]
            self._note(name, [*used, *tensors(result)])
            self._wrote([*tensors(result), *(used if _writes(func) else ())])
        for tensor in tensors(result):
            if self._new(tensor) and name in EMPTY:
                self.poison(tensor)
        return result

    def _wrote(self, results: list[torch.Tensor]) -> None:
        plain = (one for one in results if one.layout is torch.strided and not one.is_meta)
        self.written.update(one.untyped_storage().data_ptr() for one in plain)

    def _note(self, name: str, used: list[torch.Tensor]) -> None:
        """Remember an operation. Two that differ only in their storages' content are two."""
        if len(self.operations) > MOST_OPERATIONS:
            return
        sizes = [(str(place), float(size)) for place, size in dict(extent(t) for t in used).items()]
        storages, rest = dict(sizes[: MOST_STORAGES - 1]), sum(size for _, size in sizes[MOST_STORAGES - 1 :])
        if rest:
            storages[NOWHERE] = storages.get(NOWHERE, 0.0) + rest
        plain, after = NAMES.get(name, name), self.launches()
        self.operations.append({"name": plain, "after": after, "storages": storages, "fetches": name in FETCHES})

    def poison(self, tensor: torch.Tensor) -> None:
        """Fill a tensor with the pattern, and not the gaps between its elements."""
        for place, size in runs(tensor):
            ctypes.memset(place, self.pattern, size)

    def _new(self, tensor: torch.Tensor) -> bool:
        """Remember a tensor's storage. Returns whether it was not known."""
        if tensor.layout is not torch.strided or tensor.is_meta or type(tensor) is not torch.Tensor:
            return False
        storage = tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        known = self._storages.get(place)
        if not size or place in self._given or (known is not None and not known.expired()):
            return False
        self._storages[place] = StorageWeakRef(storage)
        self._memory.add(place, size)
        return True

    def see(self, tensor: torch.Tensor) -> None:
        """Remember a tensor that was there before the call: a global of the submission, for example."""
        place, size = extent(tensor)
        inside = any(start <= place and place + size <= start + length for start, length in self._inputs.values())
        if not inside:
            self._new(tensor.detach())

    def reserve(self, address: int, size: int, name: str) -> None:
        """Allow launches to use memory that is not torch's. `name`: what it is to the user."""
        self._memory.add(address, size)
        self.names[address] = name

    def release(self, address: int) -> None:
        """Forbid launches to use it."""
        self._memory.remove(address)

    def undefine(self, address: int, size: int) -> None:
        """Note that nobody has written these bytes."""
        fill(address, size, self.pattern)

    def define(self, address: int, size: int) -> None:
        """Note that something other than a launch wrote these bytes."""

    def memory(self) -> Memory:
        """Return what a launch may use now."""
        for place in [place for place, storage in self._storages.items() if storage.expired()]:
            del self._storages[place]
            self._memory.remove(place)
        return self._memory
