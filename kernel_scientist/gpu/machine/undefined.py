"""Memory of a call under a checking run: what torch allocates without writing is undefined, and stays so when copied.

An operation of torch on undefined memory is done twice as well. Runs in workers: standard library, numpy, torch only.
"""

import ctypes
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import torch

from kernel_scientist.gpu.fake.host_tensors import tensors
from kernel_scientist.gpu.machine import memory
from kernel_scientist.gpu.machine.allocations import EMPTY, Allocations, extent, is_view, runs
from kernel_scientist.gpu.machine.checking import Checks, Tensor
from kernel_scientist.gpu.machine.input_memory import InputMemory
from kernel_scientist.gpu.machine.program import Array
from kernel_scientist.gpu.machine.shadow import Reach


class CheckedAllocations(Allocations):
    """Allocations whose undefined bytes are known."""

    def __init__(
        self, data: Any, writable: Collection[int], checks: Checks, seed: int, device: InputMemory | None = None
    ) -> None:
        """`data`: the inputs, of which those at `writable` may be written. `device`: the inputs' memory."""
        super().__init__(data, writable, 0, device)
        self.checks, self.shadow, self.seed = checks, checks.shadow, seed
        for n, item in enumerate(data if isinstance(data, list | tuple) else [data]):
            for tensor in tensors(item):
                place, size = extent(tensor)
                if place not in checks.tensors or checks.tensors[place].bytes < size:
                    checks.tensors[place] = Tensor(f"input {n}", tensor.element_size(), size)

    def _dispatched(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation of torch; remember what it allocated, and what of its results is undefined."""
        read = not is_view(func) and any(self._undefined(one) is not None for one in tensors([args, kwargs]))
        twin = _Twin(self, args, kwargs) if read else None
        result = func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        fresh = [tensor for tensor in tensors(result) if self._new(tensor)]
        for tensor in fresh:
            place, size = _storage(tensor)
            self.shadow.define(place, size)
            self.checks.tensors[place] = Tensor(f"{name}{tuple(tensor.shape)}", tensor.element_size(), size)
            if name in EMPTY:
                self.poison(tensor)
        written = [tensor for tensor in _written(func, args, kwargs) if tensor.layout is torch.strided]
        if twin is None:
            for tensor in written:
                self._define(tensor)
        else:
            twin.follow(func, result, fresh, written)
        return result

    def poison(self, tensor: torch.Tensor) -> None:
        """Make a tensor's elements undefined, and not the gaps between them."""
        for place, size in runs(tensor):
            self.undefine(place, size)

    def reserve(self, address: int, size: int, name: str) -> None:
        """Allow launches to use memory that is not torch's."""
        super().reserve(address, size, name)
        self.checks.tensors[address] = Tensor(name, 1, size)

    def undefine(self, address: int, size: int) -> None:
        """Make these bytes undefined."""
        memory.clear(address, size)
        self.shadow.poison(address, size, self.seed)

    def define(self, address: int, size: int) -> None:
        """Note that these bytes are defined."""
        self.shadow.define(address, size)

    def reached(self, output: Any) -> None:
        """Note that the elements of these tensors are a result. What nobody wrote is no finding: its value is wrong."""
        for tensor in tensors(output):
            for origin in np.unique(self.origins(tensor)):
                self.shadow.reach(int(origin), Reach.OUTPUT)

    def origins(self, tensor: torch.Tensor) -> Array:
        """Return the records that say why elements of a tensor are undefined."""
        place, size = extent(tensor)
        if tensor.layout is not torch.strided or size == 0 or self.shadow.delta(place, size) is None:
            return np.zeros(1, np.uint32)
        found = torch.from_numpy(self.shadow.origins(place, size).astype(np.int64))
        width = tensor.element_size()
        bytes_ = found.as_strided((*tensor.shape, width), (*(stride * width for stride in tensor.stride()), 1))
        return bytes_.reshape(-1).numpy()

    def _undefined(self, tensor: torch.Tensor) -> Array | None:
        if tensor.layout is not torch.strided or tensor.is_meta or type(tensor) is not torch.Tensor:
            return None
        place, size = extent(tensor)
        return self.shadow.delta(place, size) if size else None

    def _define(self, tensor: torch.Tensor) -> None:
        place, size = extent(tensor)
        if tensor.is_contiguous() or self._undefined(tensor) is None:
            self.shadow.define(place, size)
            return
        delta = self._undefined(tensor)
        assert delta is not None
        view = _elements(torch.from_numpy(delta), tensor)
        view.zero_()
        self.put(place, delta, self.first(tensor))

    def put(self, place: int, delta: Array, origin: int) -> None:
        """Note how bytes differ now."""
        self.shadow.put(place, delta, origin)

    def first(self, tensor: torch.Tensor) -> int:
        """Return a record that says why something in a tensor is undefined; 0: nobody wrote it."""
        return int(self.shadow.origins(*extent(tensor)).max(initial=0))


class _Twin:
    """An operation's arguments as the second run has them."""

    def __init__(self, memory: CheckedAllocations, args: Any, kwargs: Any) -> None:
        self.memory, self.origin = memory, 0
        self._copies: dict[int, torch.Tensor] = {}
        self.args, self.kwargs = self._copied(args), self._copied(kwargs)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._copied(one) for one in value)
        if isinstance(value, dict):
            return {name: self._copied(one) for name, one in value.items()}
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.numel() == 0:
            return value
        if id(value) not in self._copies:
            place, size = extent(value)
            raw = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(place)).copy()
            delta = self.memory.shadow.delta(place, size)
            if delta is not None:
                raw ^= delta
                self.origin = max(self.origin, self.memory.first(value))
            flat = torch.from_numpy(raw).view(value.dtype)
            self._copies[id(value)] = flat.as_strided(value.shape, value.stride())
        return self._copies[id(value)]

    def follow(self, func: Any, result: Any, fresh: list[torch.Tensor], written: list[torch.Tensor]) -> None:
        """Do the operation again, and note where its results differ."""
        try:
            again = func(*self.args, **self.kwargs)
        except Exception:  # a value that it refuses: it depends on what is undefined
            self.memory.shadow.reach(self.origin, Reach.BRANCH)
            return
        pairs = [
            (a, b) for a, b in zip(tensors([result]), tensors([again]), strict=False) if any(a is f for f in fresh)
        ]
        pairs += [(tensor, self._copies[id(tensor)]) for tensor in written if id(tensor) in self._copies]
        for one, other in pairs:
            place, size = extent(one)
            if size and one.shape == other.shape:
                raw = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(place))
                twin = torch.from_numpy(raw.copy()).view(one.dtype).as_strided(one.shape, one.stride())
                twin.copy_(other)
                span = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(twin.data_ptr()))
                self.memory.put(place, raw ^ span, self.origin)
        if not isinstance(result, torch.Tensor | list | tuple) and result != again:
            self.memory.shadow.reach(self.origin, Reach.BRANCH)


def _elements(raw: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    width = tensor.element_size()
    return raw.as_strided((*tensor.shape, width), (*(stride * width for stride in tensor.stride()), 1))


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """Return the tensors that an operation changes."""
    for n, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[n] if n < len(args) else kwargs.get(argument.name)
            yield from tensors([value])
