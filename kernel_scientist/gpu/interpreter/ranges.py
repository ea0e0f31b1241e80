"""Sets of addresses, as sorted and disjoint ranges: int64 [ranges, (first, last + 1)]. Imports only numpy and torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
NONE = np.zeros((0, 2), np.int64)


def of_accesses(addresses: Array, size: int) -> Array:
    """Return the ranges of accesses of `size` bytes each."""
    starts = np.unique(addresses).astype(np.int64)
    breaks = np.flatnonzero(np.diff(starts) > size)
    first, last = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(starts) - 1]])
    return np.stack([starts[first], starts[last] + size], axis=1)


def merged(parts: Sequence[Array]) -> Array:
    """Return the union of ranges, which may overlap."""
    every = np.concatenate(parts) if parts else NONE
    if len(every) < 2:
        return every
    every = every[np.argsort(every[:, 0], kind="stable")]
    ends = np.maximum.accumulate(every[:, 1])
    breaks = np.flatnonzero(every[1:, 0] > ends[:-1])
    first, last = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(every) - 1]])
    return np.stack([every[first, 0], ends[last]], axis=1)


def overlapping(ranges: Array, others: Array) -> Array:
    """Return which ranges overlap a set; the ranges need not be sorted."""
    if not len(others):
        return np.zeros(len(ranges), np.bool_)
    before = np.searchsorted(others[:, 0], ranges[:, 1], side="left") - 1
    return (before >= 0) & (others[np.maximum(before, 0), 1] > ranges[:, 0])


def covered(ranges: Array, others: Array) -> bool:
    """Whether a set contains all ranges."""
    if not len(ranges) or not len(others):
        return not len(ranges)
    before = np.searchsorted(others[:, 0], ranges[:, 0], side="right") - 1
    return bool(((before >= 0) & (others[np.maximum(before, 0), 1] >= ranges[:, 1])).all())


def storage(tensor: torch.Tensor) -> Array:
    """Return the range of a tensor's storage; none for an empty one."""
    place = tensor.untyped_storage()
    start = place.data_ptr()
    return np.array([[start, start + place.nbytes()]], np.int64) if place.nbytes() else NONE


def to_mask(ranges: Array, tensor: torch.Tensor) -> torch.Tensor:
    """Return which elements of a tensor lie in the ranges, in its shape."""
    flat, view = _blank(tensor)
    start, size, item = tensor.untyped_storage().data_ptr(), len(flat), tensor.element_size()
    edges = np.zeros(size + 1, np.int8)
    inside: Array = np.clip((ranges - start + np.array([[0, item - 1]])) // item, 0, size)
    inside = inside[inside[:, 0] < inside[:, 1]]
    np.add.at(edges, inside[:, 0], 1)
    np.add.at(edges, inside[:, 1], -1)
    flat.copy_(torch.from_numpy(np.cumsum(edges[:-1], dtype=np.int8) > 0))
    return view


def of_mask(mask: torch.Tensor, tensor: torch.Tensor) -> Array:
    """Return the addresses of a tensor's chosen elements."""
    flat, view = _blank(tensor)
    view.logical_or_(mask)
    edges = np.flatnonzero(np.diff(flat.numpy().view(np.int8), prepend=np.int8(0), append=np.int8(0)))
    start, item = tensor.untyped_storage().data_ptr(), tensor.element_size()
    return start + item * np.stack([edges[::2], edges[1::2]], axis=1)


def _blank(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a mask of a tensor's storage, and the tensor's view of it."""
    flat = torch.zeros(tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=torch.bool)
    return flat, torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())
