"""Descriptions of a kernel's outputs as data. Worker's side.

The description includes a tensor's subclass, views of inputs and zero strides; the evaluator decides whether they
are allowed. Imports only the standard library and torch.
"""

import ctypes
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness

# Bound before a kernel's file is read, and called unbound: an attribute of an instance, or of torch's class, that the
# kernel sets cannot replace them. It could compute when it is read, after the timed call.
_data_ptr: Callable[[torch.Tensor], int] = torch.Tensor.data_ptr
_storage: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage
_storage_ptr: Callable[[Any], int] = torch.UntypedStorage.data_ptr
_storage_bytes: Callable[[Any], int] = torch.UntypedStorage.nbytes
_detach: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.detach
_stride: Callable[[torch.Tensor], tuple[int, ...]] = torch.Tensor.stride
_offset: Callable[[torch.Tensor], Any] = torch.Tensor.storage_offset
_contiguous: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.contiguous
_cpu: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.cpu
_shape, _dtype, _device, _layout, _is_quantized = (
    inspect.getattr_static(torch.Tensor, name).__get__
    for name in ("shape", "dtype", "device", "layout", "is_quantized")
)
_without_functions: Any = torch._C.DisableTorchFunction  # pyright: ignore[reportPrivateUsage]
_without_modes: Any = _disable_current_modes


def describe(output: object, inputs: list[torch.Tensor], copy: Callable[[torch.Tensor], int]) -> protocol.Header:
    """Return an output's description. `copy` stores a tensor's bytes and returns the number of the buffer."""
    with _without_functions(), _without_modes():  # a kernel may have left one on
        return _described(output, inputs, copy)


def _described(output: object, inputs: list[torch.Tensor], copy: Callable[[torch.Tensor], int]) -> protocol.Header:
    if type(output) is torch.Tensor:
        if _layout(output) is not torch.strided or _is_quantized(output):
            return {"kind": "object", "type": f"a {_layout(output)} tensor"}
        shape, strides = tuple(_shape(output)), _stride(output)
        order = protocol.order_of(shape, strides) or range(len(shape))
        form = protocol.DenseLayout(_dtype(output), shape, tuple(order))
        return {**form.header(), "buffer": copy(output), **_storage_facts(output, inputs)}
    if type(output) is list or issubclass(type(output), tuple):  # torch's named tuples are tuples
        kind = "list" if type(output) is list else "tuple"
        # tuple's own iterator: that of a subclass could compute when it is read, after the timed call
        members = list(output) if kind == "list" else list(tuple.__iter__(output))  # type: ignore[call-overload,arg-type]
        return {"kind": kind, "items": [_described(item, inputs, copy) for item in members]}
    if type(output) is dict:
        return {"kind": "dict", "items": {str(k): _described(v, inputs, copy) for k, v in output.items()}}
    if output is None or type(output) in (bool, int, float, str):
        return {"kind": "value", "value": output}
    return {"kind": "object", "type": f"{type(output).__module__}.{type(output).__qualname__}"[:200]}


def copied(tensor: torch.Tensor, native: NativeHarness, on_gpu: bool) -> bytearray:
    """Return a tensor's elements as contiguous bytes."""
    live = _detach(tensor) if on_gpu else _cpu(_detach(tensor))
    live = live if protocol.order_of(tuple(_shape(live)), _stride(live)) is not None else _contiguous(live)
    size = math.prod(_shape(live)) * _dtype(live).itemsize
    data = bytearray(size)
    if size and on_gpu:
        native.read_gpu(address(data), _data_ptr(live), size)
    elif size:
        ctypes.memmove(address(data), _data_ptr(live), size)
    return data


def _storage_facts(tensor: torch.Tensor, inputs: list[torch.Tensor]) -> protocol.Header:
    start = _storage_ptr(_storage(tensor))
    starts = [_storage_ptr(_storage(x)) for x in inputs] if start else []
    return {
        "strides": list(_stride(tensor)),
        "first": _offset(tensor),
        "device": _device(tensor).type,
        "storage_bytes": _storage_bytes(_storage(tensor)),
        "input": starts.index(start) if start in starts else None,
        "storage": start,
    }


def address(data: Any) -> int:
    """Return the address of a writable buffer."""
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
