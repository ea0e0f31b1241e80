"""What a kernel returned, as data: pinned down at once by a digest, then copied, described exactly. Worker's side.

A tensor is described as it is, a subclass, a view of an input or a stride of zero included; whether that is allowed
is the verifier's business. Imports only the standard library and torch.
"""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness

# Bound before a kernel's file is read, and called unbound: an attribute of the instance cannot stand in their way.
_data_ptr: Callable[[torch.Tensor], int] = torch.Tensor.data_ptr
_storage: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage


Rooms = dict[int, list[bytearray]]
"""Memory of former copies by size, to be used again."""


class Snapshot:
    """A tree of outputs: a digest as early as possible, copies when that is no longer on the verifier's clock.

    `on_gpu`: the outputs stay where they are, and every look at them is a copy, so that what writes late is seen.
    """

    def __init__(
        self,
        output: object,
        native: NativeHarness,
        rooms: Rooms,
        on_gpu: bool = False,
        socket: int = -1,
        digest: int | None = None,
    ) -> None:
        self._output, self._shim, self._rooms, self._on_gpu = output, native, rooms, on_gpu
        self._lives: list[torch.Tensor] = []
        _lives(output, self._lives, on_gpu)
        self.digest = self._pin(socket) if digest is None else digest
        """What pins the outputs' bytes down before anybody has seen them; sent at once on `socket`, if one is given."""
        self._tree: protocol.Header | None = None
        self._copies: list[bytearray] = []

    def message(self, inputs: list[torch.Tensor], out: list[protocol.Buffer]) -> protocol.Header:
        """Return the description; the bytes are appended to `out`."""
        if self._tree is None:
            self.keep(inputs)
        assert self._tree is not None
        out.extend(self._copies)
        return self._tree

    def keep(self, inputs: list[torch.Tensor]) -> bool:
        """Copy the outputs: the next call may write to the same memory. Return whether they are what they were."""
        if self._tree is None:
            self._copies = [self._copy(live) for live in self._lives]
            self._tree = _describe(self._output, inputs, iter(range(len(self._lives))))
        return self._pin() == self.digest

    def free(self) -> None:
        """Give the memory back for the next copy."""
        for copy in self._copies:
            self._rooms.setdefault(len(copy), []).append(copy)
        self._copies = []

    def _pin(self, socket: int = -1) -> int:
        if not self._on_gpu:
            return self._shim.pin([(_data_ptr(live), _size(live)) for live in self._lives], socket)
        copies = [self._copy(live) for live in self._lives]
        digest = self._shim.pin([(address(copy), len(copy)) for copy in copies], socket)
        for copy in copies:
            self._rooms.setdefault(len(copy), []).append(copy)
        return digest

    def _copy(self, live: torch.Tensor) -> bytearray:
        size = _size(live)
        waiting = self._rooms.get(size)
        data = waiting.pop() if waiting else bytearray(size)
        if size and self._on_gpu:
            self._shim.read_gpu(address(data), _data_ptr(live), size)
        elif size:
            ctypes.memmove(address(data), _data_ptr(live), size)
        return data


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _described(tensor: torch.Tensor) -> bool:
    """Whether a tensor's values can be told by its bytes and form."""
    return tensor.layout is torch.strided and not tensor.is_quantized


def _lives(value: object, found: list[torch.Tensor], on_gpu: bool) -> None:
    """Find the outputs in a tree, without gaps; in memory of the CPU where that is what is timed."""
    if type(value) is torch.Tensor:
        if _described(value):
            live = value.detach() if on_gpu else value.detach().to("cpu")
            found.append(live if protocol.dense_order(live) is not None else live.contiguous())
    elif type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:  # type: ignore[attr-defined]
            _lives(item, found, on_gpu)


def _describe(value: object, inputs: list[torch.Tensor], numbers: Iterator[int]) -> protocol.Header:
    if type(value) is torch.Tensor:
        if not _described(value):
            return {"kind": "object", "type": f"a {value.layout} tensor"}
        return {**protocol.form(value).header(), "buffer": next(numbers), **_manner(value, inputs)}
    if type(value) in (list, tuple):
        return {"kind": type(value).__name__, "items": [_describe(v, inputs, numbers) for v in value]}  # type: ignore[attr-defined]
    if type(value) is dict:
        return {"kind": "dict", "items": {str(k): _describe(v, inputs, numbers) for k, v in value.items()}}
    if value is None or type(value) in (bool, int, float, str):
        return {"kind": "value", "value": value}
    return {"kind": "object", "type": f"{type(value).__module__}.{type(value).__qualname__}"[:200]}


def _manner(tensor: torch.Tensor, inputs: list[torch.Tensor]) -> protocol.Header:
    """How a tensor is stored, beside its values."""
    start = _storage(tensor).data_ptr()
    return {
        "strides": list(tensor.stride()),
        "device": tensor.device.type,
        "storage_bytes": _storage(tensor).nbytes(),
        "input": next((i for i, x in enumerate(inputs) if start and _storage(x).data_ptr() == start), None),
        "storage": start,
    }


def address(data: Any) -> int:
    """Return where the bytes of a writable buffer lie."""
    return ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))


def tensors(value: object) -> list[torch.Tensor]:
    """Return the tensors of a tree, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []
