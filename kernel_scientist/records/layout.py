"""Where tensors lie in their storages: strides, offsets, gaps, and which of them share memory.

Inputs travel as whole storages with views of them, so that a kernel gets them as the problem made them. Runs in workers
too: imports only the standard library and torch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MOST_MARKED = 256 << 20
"""Largest storage, in bytes, of which every byte is marked to count those that several tensors have in common."""


@dataclass(frozen=True)
class View:
    """A tensor as a view of its storage."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements."""
    first: int
    """Elements before the tensor's first one (torch: storage_offset)."""
    storage_bytes: int

    @staticmethod
    def of(tensor: torch.Tensor) -> View:
        """Return the view that a tensor is."""
        size = tensor.untyped_storage().nbytes()
        return View(tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()), size)

    @staticmethod
    def read(spec: dict[str, Any]) -> View:
        """Return the view that `header` described. Raises ValueError if it does not fit its storage."""
        import torch

        dtype = getattr(torch, spec["dtype"])
        shape, stride = (tuple(int(n) for n in spec[name]) for name in ("shape", "stride"))
        view = View(dtype, shape, stride, int(spec["first"]), int(spec["storage_bytes"]))
        if not isinstance(dtype, torch.dtype) or len(shape) != len(stride) or min((*shape, *stride, view.first)) < 0:
            raise ValueError(f"not a tensor: {spec['dtype']} {shape} {stride}")
        if view.span[1] > view.storage_bytes:
            raise ValueError(f"a tensor that ends at byte {view.span[1]} of {view.storage_bytes}")
        return view

    def header(self) -> dict[str, Any]:
        """Return the view as part of a message."""
        name = str(self.dtype).removeprefix("torch.")
        place = {"stride": list(self.stride), "first": self.first, "storage_bytes": self.storage_bytes}
        return {"kind": "view", "dtype": name, "shape": list(self.shape), **place}

    def over(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """Return the tensor that this is a view of a storage."""
        import torch

        empty = torch.empty(0, dtype=self.dtype, device=storage.device)
        return empty.set_(storage, self.first, self.shape, self.stride)

    @property
    def span(self) -> tuple[int, int]:
        """First byte and end of what the elements span in the storage."""
        size, last = self.dtype.itemsize, sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        start = self.first * size
        return start, start + (0 if 0 in self.shape else (last + 1) * size)

    @property
    def elements(self) -> int:
        """Number of elements in memory, of which one may be several of the tensor's (stride 0)."""
        return math.prod(n for n, s in zip(self.shape, self.stride, strict=True) if s or not n)

    @property
    def is_distinct(self) -> bool:
        """Whether each element certainly has memory of its own."""
        return self.is_plain and self.elements == math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether the elements fill the storage, each once."""
        return self.is_distinct and self.elements * self.dtype.itemsize == self.storage_bytes

    @property
    def is_plain(self) -> bool:
        """Whether elements certainly share memory only along dimensions of stride 0."""
        reach = 0
        wide = sorted((s, n) for n, s in zip(self.shape, self.stride, strict=True) if n > 1 and s)
        for stride, size in wide:
            if stride <= reach and 0 not in self.shape:
                return False
            reach += (size - 1) * stride
        return True


def identity(tensor: torch.Tensor) -> int:
    """Return a number that is the same for all tensors that share a storage, as long as one of them lives."""
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def numbers(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Return the number of each tensor's storage; the first tensor's is 0."""
    known = dict[int, int]()
    return [known.setdefault(identity(tensor), len(known)) for tensor in tensors]


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's storage."""
    import torch

    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def elements(tensor: torch.Tensor, storage: torch.Tensor | None = None) -> torch.Tensor:
    """Return the bytes of a tensor's elements, along one more dimension; dimensions of stride 0 have length 1.

    storage: bytes (or a value for each) to choose from instead of those of the tensor's own storage.
    """
    shape = [min(n, 1) if not s else n for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    size, stride = tensor.element_size(), tensor.stride()
    flat = raw(tensor) if storage is None else storage
    return flat.as_strided((*shape, size), (*(s * size for s in stride), 1), tensor.storage_offset() * size)


def once(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view in which dimensions of stride 0 have length 1: each element is there once."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        tensor = tensor if stride or size < 2 else tensor.narrow(dim, 0, 1)
    return tensor


def like(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same layout with memory of its own, whose content does not matter."""
    import torch

    if View.of(tensor).is_whole:
        return torch.empty_like(tensor)
    return View.of(tensor).over(tensor.untyped_storage().clone())


def unique_bytes(tensors: Sequence[torch.Tensor]) -> int:
    """Return how many bytes of memory tensors occupy together: what several have in common counts once.

    Where that is not known without marking many bytes, those of the largest of them.
    """
    groups: dict[int, dict[View, torch.Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(identity(tensor), {})[View.of(tensor)] = tensor
    return sum(_unique(group) for group in groups.values())


def _unique(group: dict[View, torch.Tensor]) -> int:
    import torch

    sizes = [view.elements * view.dtype.itemsize for view in group]
    spans = sorted(view.span for view in group)
    apart = all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    if apart and all(view.is_plain for view in group):
        return sum(sizes)
    storage_bytes = next(iter(group)).storage_bytes
    if storage_bytes > MOST_MARKED or any(tensor.is_meta or _is_fake(tensor) for tensor in group.values()):
        return max(_least(view) for view in group)
    marks = torch.zeros(storage_bytes, dtype=torch.bool)
    for tensor in group.values():
        elements(tensor, marks)[...] = True
    return int(marks.sum())


def _least(view: View) -> int:
    """Return bytes that a view occupies at least."""
    if view.is_plain:
        return view.elements * view.dtype.itemsize
    return max((n for n, s in zip(view.shape, view.stride, strict=True) if s), default=1) * view.dtype.itemsize


def _is_fake(tensor: torch.Tensor) -> bool:
    return type(tensor).__name__ == "FakeTensor"


def refusal(tensor: torch.Tensor, device: str = "") -> str:
    """Return why a tensor cannot be sent to a worker as it is; empty if it can.

    device: where kernels get all tensors; empty: anywhere; meta: it stands for a GPU, and any tensor will do.
    """
    import torch

    if tensor.is_nested or tensor.layout is not torch.strided:
        return f"a tensor of layout {'nested' if tensor.is_nested else str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_quantized:
        return f"a quantised tensor ({str(tensor.dtype).removeprefix('torch.')})"
    if type(tensor) is not torch.Tensor and not _is_fake(tensor):
        return f"a {type(tensor).__name__}, a subclass of torch.Tensor"
    if tensor.is_meta and device != "meta":
        return "a tensor on the device meta, which has no values"
    if device not in ("", "meta") and tensor.device != torch.empty(0, device=device).device:
        return f"a tensor on {tensor.device}, while kernels get all on {'cpu' if device == 'cpu' else 'the GPU'},"
    if tensor.is_conj() or tensor.is_neg():
        lazily = "conjugated" if tensor.is_conj() else "negated"
        return f"a lazily {lazily} tensor (resolve_{'conj' if tensor.is_conj() else 'neg'}() makes a plain one)"
    if tensor.requires_grad:
        return "a tensor that requires a gradient (detach() makes a plain one)"
    if any(getattr(tensor, "names", ())):  # torch 2.13 has none
        return "a tensor with named dimensions (rename(None) makes a plain one)"
    if tensor.device.type == "cpu" and (tensor.is_pinned() or tensor.is_shared()):
        return f"a tensor in {'pinned' if tensor.is_pinned() else 'shared'} memory (clone() makes a plain one)"
    if vars(tensor) and not _is_fake(tensor):
        return f"a tensor with attributes of its own ({', '.join(sorted(vars(tensor)))})"
    return ""
