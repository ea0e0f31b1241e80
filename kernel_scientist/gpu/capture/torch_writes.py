"""What an operation of torch wrote. Imports only torch."""

from typing import Any

import torch

from kernel_scientist.gpu.fake.host_tensors import tensors
from kernel_scientist.gpu.machine.allocations import EMPTY

LOOKING = frozenset((
    *("__get__", "__getitem__", "__len__", "__repr__", "__format__", "__hash__", "size", "stride", "numel", "dim"),
    *("storage_offset", "is_contiguous", "element_size", "get_device", "view", "view_as", "reshape", "flatten", "t"),
    *("transpose", "swapaxes", "permute", "squeeze", "unsqueeze", "expand", "expand_as", "narrow", "select", "split"),
    *("chunk", "unbind", "unflatten", "movedim", "as_strided", "diagonal", "detach", "is_floating_point", "nelement"),
    *("broadcast_to", "slice", "adjoint", "swapdims", "moveaxis", "requires_grad_", "tensor_split", "is_complex"),
))  # fmt: skip
"""Operations that neither read nor write elements: they inspect a tensor or make a view."""
OVERWRITING = frozenset(
    ("zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "zeros_like", "ones_like", "full_like")
)
"""Operations that do not read their first argument."""
EXPOSING = frozenset(("data_ptr", "numpy", "__array__", "__dlpack__", "untyped_storage", "storage", "set_", "resize_"))
"""Operations that hand out memory."""


def written(name: str, args: Any, kwargs: Any, result: Any) -> list[torch.Tensor]:
    """Return the tensors that an operation of torch wrote: not views, and not memory that it left undefined."""
    if name in EMPTY or name in EXPOSING:
        return []
    if name in ("copy_", "__setitem__"):
        return [args[0]]
    in_place = name not in LOOKING and (name.startswith("__i") or (name.endswith("_") and not name.endswith("__")))
    found = list(tensors(kwargs.get("out", result)))
    if in_place or kwargs.get("out") is not None:
        return found
    given = {tensor.untyped_storage().data_ptr() for tensor in tensors((args, kwargs))}
    return [tensor for tensor in found if tensor.untyped_storage().data_ptr() not in given]
