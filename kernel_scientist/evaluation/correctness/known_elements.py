"""Which elements of an output a worker computed, and the boxes that contain them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from kernel_scientist.workers.validation import protocol_violation

MOST_BOXES = 64
Box = tuple[slice, ...]
Mask = npt.NDArray[np.bool_]


def mask(tensor: torch.Tensor, runs: Sequence[tuple[int, int]]) -> Mask:
    """Return which elements a worker computed. Raises KernelFailure for runs outside of the tensor."""
    flat = np.zeros(tensor.numel(), dtype=np.bool_)
    for first, count in runs:
        if not 0 <= first <= first + count <= tensor.numel():
            raise protocol_violation("elements outside of its output")
        flat[first : first + count] = True
    return flat.reshape(tensor.shape)


def boxes(known: Mask) -> list[Box]:
    """Return boxes that together contain all known elements: products of runs of indices per dimension."""
    found: list[Box] = [()]
    for dim in range(known.ndim):
        found = [(*box, run) for box in found for run in _runs_of(known, box, dim)]
        if len(found) > MOST_BOXES:
            return [tuple(slice(0, size) for size in known.shape)]
    return found


def _runs_of(known: Mask, box: Box, dim: int) -> list[slice]:
    inside = known[box]
    line = inside.any(axis=tuple(d for d in range(known.ndim) if d != dim))
    edges = np.flatnonzero(np.diff(line, prepend=False, append=False)).tolist()
    return [slice(first, end) for first, end in zip(edges[::2], edges[1::2], strict=True)]
