"""The memory that a submission's launches may use: its inputs, and what torch allocates while it runs.

Memory that nobody wrote holds a pattern of bytes, so that a kernel that relies on it is wrong here as well. Runs in
workers: standard library, numpy and torch only.
"""

import contextlib
import ctypes
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_scientist.gpu.fake import host_tensors
from kernel_scientist.gpu.fake.host_tensors import tensors
from kernel_scientist.gpu.machine.counts import MOST_OPERATIONS, MOST_STORAGES
from kernel_scientist.gpu.machine.input_memory import InputMemory
from kernel_scientist.gpu.machine.memory import Copy, Memory, fill

EMPTY = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
"""Operations that return memory that nobody wrote."""
NAMES = {"_to_copy": "to", "constant_pad_nd": "pad", "index": "__getitem__", "index_put_": "__setitem__"}
"""Names that Python has for torch's own operations (`model.predict.STREAMING`)."""
FETCHES = frozenset(("_local_scalar_dense", "nonzero", "equal", "is_nonzero"))
"""Operations that bring values to the host."""
NOWHERE = "0"
"""Stands for the storages of an operation beyond that number (`model.predict.NOWHERE`)."""


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

    def __init__(self, data: Any, writable: Collection[int], pattern: int, device: InputMemory | None = None) -> None:
        """`data`: the inputs, of which those at `writable` may be written. `pattern`: a byte. `device`: the inputs'
        memory."""
        super().__init__()
        self._device = device or InputMemory()
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
        kwargs = kwargs or {}
        if func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):  # pyright: ignore
            with self:  # in inference mode torch itself does not divide such operations
                if (result := func.decompose(*args, **kwargs)) is not NotImplemented:
                    return result
        is_own = func.namespace == "aten"  # other operators run code of the submission's
        reached = (not is_own or not is_view(func)) and any(map(self._is_input, tensors((args, kwargs))))
        with self._device.used() if reached or not is_own else contextlib.nullcontext():
            return self._dispatched(func, args, kwargs)

    def _is_input(self, tensor: torch.Tensor) -> bool:
        plain = tensor.layout is torch.strided and not tensor.is_meta
        return plain and tensor.untyped_storage().data_ptr() in self._given

    def _dispatched(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        if name not in EMPTY and not is_view(func):
            used = [*tensors(args), *tensors(kwargs)]
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
        plain, after, fetches = NAMES.get(name, name), self.launches(), name in FETCHES or host_tensors.is_fetching()
        self.operations.append({"name": plain, "after": after, "storages": storages, "fetches": fetches})

    def copied(self, copy: Copy) -> None:
        """Remember a copy or a fill by HIP's runtime."""
        to, source = self._device_place(copy.to, copy.to_host), self._device_place(copy.source, copy.from_host)
        fetches = source is not None and (copy.to_host or (copy.to_host is None and to is None))
        name = "fill_" if copy.source is None else "copy_"
        storages = {str(place): float(copy.size) for place in (to, source) if place is not None}
        if storages and len(self.operations) <= MOST_OPERATIONS:
            self.operations.append({"name": name, "after": self.launches(), "storages": storages, "fetches": fetches})

    def _device_place(self, address: int | None, is_host: bool | None) -> int | None:
        """Return where the memory of the device begins that contains an address; None for memory of the host."""
        found = self._memory.around(address) if address is not None and not is_host else None
        return address if found is None and is_host is False else found

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
