"""Descriptions of a kernel's outputs as data. Worker's side.

The description includes a tensor's subclass, views of inputs and zero strides; the evaluator decides whether they
are allowed. Imports only the standard library and torch.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import NativeHarness

# Bound before a kernel's file is read, and called unbound: an attribute of the instance cannot replace them.
_data_ptr: Callable[[torch.Tensor], int] = torch.Tensor.data_ptr
_storage: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage


def describe(output: object, inputs: list[torch.Tensor], copy: Callable[[torch.Tensor], int]) -> protocol.Header:
    """Return an output's description. `copy` stores a tensor's bytes and returns the number of the buffer."""
    if type(output) is torch.Tensor:
        if output.layout is not torch.strided or output.is_quantized:
            return {"kind": "object", "type": f"a {output.layout} tensor"}
        return {**protocol.form(output).header(), "buffer": copy(output), **_storage_facts(output, inputs)}
    if type(output) is list or issubclass(type(output), tuple):  # torch's named tuples are tuples
        kind = "list" if type(output) is list else "tuple"
        # tuple's own iterator: that of a subclass could compute when it is read, after the timed call
        members = list(output) if kind == "list" else list(tuple.__iter__(output))  # type: ignore[call-overload,arg-type]
        return {"kind": kind, "items": [describe(item, inputs, copy) for item in members]}
    if type(output) is dict:
        return {"kind": "dict", "items": {str(k): describe(v, inputs, copy) for k, v in output.items()}}
    if output is None or type(output) in (bool, int, float, str):
        return {"kind": "value", "value": output}
    return {"kind": "object", "type": f"{type(output).__module__}.{type(output).__qualname__}"[:200]}


def copied(tensor: torch.Tensor, native: NativeHarness, on_gpu: bool) -> bytearray:
    """Return a tensor's elements as contiguous bytes."""
    live = tensor.detach() if on_gpu else tensor.detach().to("cpu")
    live = live if protocol.dense_order(live) is not None else live.contiguous()
    size = live.numel() * live.element_size()
    data = bytearray(size)
    if size and on_gpu:
        native.read_gpu(address(data), _data_ptr(live), size)
    elif size:
        ctypes.memmove(address(data), _data_ptr(live), size)
    return data


def _storage_facts(tensor: torch.Tensor, inputs: list[torch.Tensor]) -> protocol.Header:
    start = _storage(tensor).data_ptr()
    return {
        "strides": list(tensor.stride()),
        "first": tensor.storage_offset(),
        "device": tensor.device.type,
        "storage_bytes": _storage(tensor).nbytes(),
        "input": next((i for i, x in enumerate(inputs) if start and _storage(x).data_ptr() == start), None),
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
