"""Trees of tuples, lists and dicts with tensors: a problem's inputs and outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from kernel_scientist.records import layout

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
