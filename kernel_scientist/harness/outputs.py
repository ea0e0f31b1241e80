"""What a kernel returned, as data: copied at once, described exactly. Worker's side.

A tensor is described as it is, a subclass, a view of an input or a stride of zero included; whether that is allowed
is the verifier's business. Imports only the standard library and torch.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kernel_scientist.harness import wire
from kernel_scientist.harness.shim import Shim

# Bound before a kernel's file is read, and called unbound: an attribute of the instance cannot stand in their way.
_data_ptr: Callable[[torch.Tensor], int] = torch.Tensor.data_ptr
_storage: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage


@dataclass(frozen=True)
class Copied:
    """A tensor as it was right after the call."""

    live: torch.Tensor
    bytes: bytearray


Rooms = dict[int, list[bytearray]]
"""Memory of former copies by size: a copy into memory that was used before does not wait for page faults."""


class Snapshot:
    """A copy of a tree of outputs, made as early as possible."""

    def __init__(self, output: object, shim: Shim, inputs: list[torch.Tensor], rooms: Rooms) -> None:
        self._shim, self._inputs, self._rooms = shim, inputs, rooms
        self._tensors: list[Copied] = []
        self._tree = self._take(output)

    def message(self, out: list[wire.Buffer]) -> wire.Header:
        """Return the description; the bytes are appended to `out`."""
        out.extend(copied.bytes for copied in self._tensors)
        return self._tree

    def digests(self) -> list[int]:
        """Return what pins the copied bytes down before anybody has seen them."""
        return [self._shim.hash(address(copied.bytes), len(copied.bytes)) for copied in self._tensors]

    def free(self) -> None:
        """Give the memory back for the next copy."""
        for copied in self._tensors:
            self._rooms.setdefault(len(copied.bytes), []).append(copied.bytes)

    def unchanged(self) -> bool:
        """Whether the outputs still are what was copied."""
        return all(self._hash(copied.live, copied.bytes) for copied in self._tensors)

    def _take(self, value: object) -> wire.Header:
        if type(value) is torch.Tensor:
            return self._copy(value)
        if type(value) in (list, tuple):
            return {"kind": type(value).__name__, "items": [self._take(v) for v in value]}  # type: ignore[attr-defined]
        if type(value) is dict:
            return {"kind": "dict", "items": {str(k): self._take(v) for k, v in value.items()}}
        if value is None or type(value) in (bool, int, float, str):
            return {"kind": "value", "value": value}
        return {"kind": "object", "type": f"{type(value).__module__}.{type(value).__qualname__}"[:200]}

    def _copy(self, tensor: torch.Tensor) -> wire.Header:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return {"kind": "object", "type": f"a {tensor.layout} tensor"}
        order = wire.dense_order(tensor)
        live = tensor.detach().to("cpu")
        if order is None:
            live, order = live.contiguous(), list(range(tensor.dim()))
        size = live.numel() * live.element_size()
        waiting = self._rooms.get(size)
        data = waiting.pop() if waiting else bytearray(size)
        if size:
            self._shim.copy(address(data), _data_ptr(live), size)
        form = wire.Form(tensor.dtype, tuple(tensor.shape), tuple(order))
        self._tensors.append(Copied(live, data))
        return {**form.header(), "buffer": len(self._tensors) - 1, **self._manner(tensor)}

    def _manner(self, tensor: torch.Tensor) -> wire.Header:
        """How the tensor is stored, beside its values."""
        start = _storage(tensor).data_ptr()
        return {
            "strides": list(tensor.stride()),
            "device": tensor.device.type,
            "storage_bytes": _storage(tensor).nbytes(),
            "input": next((i for i, x in enumerate(self._inputs) if start and _storage(x).data_ptr() == start), None),
            "storage": start,
        }

    def _hash(self, live: torch.Tensor, copy: bytearray) -> bool:
        if not copy:
            return True
        then = self._shim.hash(address(copy), len(copy))
        return self._shim.hash(_data_ptr(live), len(copy)) == then


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
