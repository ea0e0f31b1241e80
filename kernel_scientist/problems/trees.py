"""Trees of tuples, lists and dicts with tensors: a problem's inputs and outputs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from kernel_scientist.records import layout
from kernel_scientist.records.objects import ObjectError

if TYPE_CHECKING:
    import torch


def changed(value: Any, change: "Callable[[torch.Tensor], torch.Tensor]") -> Any:
    """Return a tree of containers with every tensor changed."""
    if hasattr(value, "untyped_storage"):
        return change(value)
    if isinstance(value, Mapping):
        return {key: changed(item, change) for key, item in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        items = [changed(item, change) for item in cast(list[Any], value)]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def items(data: Any) -> list[Any]:
    """Return the inputs by position: those of a tuple or list, or the only one."""
    return list(cast(list[Any], data)) if isinstance(data, (tuple, list)) else [data]


def with_items(data: Any, items: Sequence[Any]) -> Any:
    """Return inputs in the container of `data`."""
    if isinstance(data, (tuple, list)):
        return tuple(items) if isinstance(data, tuple) else list(items)
    return items[0]


def cloned(value: Any, parts: Any = None) -> Any:
    """Return a tree of containers with every tensor copied. Strides and offsets stay, and what shared memory does so.

    parts: copy only what shares memory with tensors in this tree.
    """
    only = None if parts is None else {layout.identity(tensor) for tensor in tensors(parts)}
    copies = dict[int, Any]()

    def copy(tensor: "torch.Tensor") -> "torch.Tensor":
        key = layout.identity(tensor)
        if only is not None and key not in only:
            return tensor
        if key not in copies:
            copies[key] = tensor.untyped_storage().clone()
        return tensor.new_empty(0).set_(copies[key], tensor.storage_offset(), tensor.shape, tensor.stride())

    return changed(value, copy)


def tensors(value: Any) -> "list[torch.Tensor]":
    """Return the tensors of a tree, in order."""
    if hasattr(value, "untyped_storage"):
        return [value]
    if isinstance(value, dict):
        return [t for item in cast(dict[str, Any], value).values() for t in tensors(item)]
    if isinstance(value, (list, tuple)):
        return [t for item in cast(list[Any], value) for t in tensors(item)]
    return []


def same(one: Any, other: Any) -> bool:
    """Whether two trees hold the same bits."""
    import torch

    def flat(tensor: "torch.Tensor") -> "torch.Tensor":
        return tensor.contiguous().reshape(-1).view(torch.uint8)

    left, right = tensors(one), tensors(other)
    pairs = [(flat(a), flat(b)) for a, b in zip(left, right, strict=False)]
    return len(left) == len(right) and all(a.shape == b.shape and bool((a == b).all()) for a, b in pairs)


def require_own_memory(data: Any, writable: Collection[int], static: Collection[int]) -> None:
    """Raise ObjectError for inputs whose memory cannot be given to a kernel as its rules say.

    writable: positions of inputs that it may write to. static: of those that stay the same from call to call.
    """
    every = items(data)
    owners = [{layout.identity(tensor) for tensor in tensors(item)} for item in every]
    for place, item in enumerate(every):
        if place in writable and not all(layout.View.of(tensor).is_distinct for tensor in tensors(item)):
            raise ObjectError(f"input {place} may be written, and several of its elements share memory")
        others = [other for other in range(len(every)) if place in static and other not in static]
        for other in others:
            if owners[place] & owners[other]:
                raise ObjectError(f"input {place} is static and shares memory with input {other}, which is not")
