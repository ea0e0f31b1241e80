"""Messages about inputs: whole storages, and tensors as views of them, so that they arrive as the problem made them.

Strides, offsets, gaps and memory that several tensors share are kept. Only the evaluator writes such messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel_scientist.records.layout import View, numbers, raw
from kernel_scientist.sandbox import protocol

if TYPE_CHECKING:
    import torch


class Spot(NamedTuple):
    """Place of a storage in shared memory, in bytes: its offset, and the pages reserved for it."""

    offset: int
    pages: int
    """Offset of the first reserved page."""
    length: int


def described(value: object, place: Callable[[int], protocol.Header]) -> protocol.Header:
    """Return the description of inputs. `place` says where a tensor's storage is: tensors count from 0, in order."""
    count = itertools.count()
    return protocol.described(value, lambda tensor: {**View.of(tensor).header(), **place(next(count))})


def encode(value: Any, tensors: Sequence[torch.Tensor], buffers: list[protocol.Buffer]) -> protocol.Header:
    """Return the description of inputs with these tensors; the bytes of each storage are appended to `buffers`."""
    found, start = numbers(tensors), len(buffers)
    for number, tensor in zip(found, tensors, strict=True):
        if number == len(buffers) - start:
            buffers.append(raw(tensor).cpu().numpy().data if tensor.untyped_storage().nbytes() else b"")
    return described(value, lambda index: {"buffer": start + found[index]})


def decode(spec: protocol.Header, make: Callable[[protocol.Header, View], torch.Tensor]) -> Any:
    """Return the inputs that a message describes; `make` makes each tensor. Raises WireError."""
    return protocol.rebuilt(spec, "view", lambda leaf: make(leaf, View.read(leaf)))


def restored(spec: protocol.Header, buffers: Sequence[bytearray], device: str = "cpu") -> Any:
    """Return the inputs that `encode` described, in memory of a device. Raises WireError."""
    import torch

    flat = [
        torch.frombuffer(one, dtype=torch.uint8).to(device) if one else torch.empty(0, device=device) for one in buffers
    ]
    storages = [one.untyped_storage() for one in flat]

    def made(leaf: protocol.Header, view: View) -> torch.Tensor:
        storage = storages[leaf["buffer"]]
        if storage.nbytes() != view.storage_bytes:
            raise ValueError(f"{storage.nbytes()} bytes for a storage of {view.storage_bytes}")
        return view.over(storage)

    return decode(spec, made)
