"""Skips torch's work on large tensors in the inspecting process: results have the right shapes, and zeros as values.

Launches depend on shapes, seldom on values; products and random numbers of full size would take minutes on a CPU.
Memory of such tensors is allocated when it is touched. Runs in untrusted processes: imports the standard library and
torch only.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from kernel_scientist.sandbox import protocol

LARGE = 1 << 22
"""Elements above which an operation is skipped."""
WORK = 1 << 31
"""Flops of a matrix product above which it is skipped."""
PRODUCTS = (
    *("matmul", "mm", "bmm", "addmm", "linear", "einsum", "__matmul__", "__rmatmul__", "scaled_dot_product_attention"),
)
CREATING = ("rand", "randn", "randint", "randperm", "ones", "zeros", "full", "arange", "linspace", "tensor", "normal")
READING = ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__getitem__", "__get__", "__set__")
SHAPING = (
    *("resize_", "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "requires_grad_", "detach_"),
)
"""Operations in place that change no value."""


def made(header: protocol.Header) -> Any:
    """Return inputs of the shapes that `case_shapes` describes. Their values are zeros."""
    match header["kind"]:
        case "tensor":
            return _zeros(getattr(torch, header["dtype"]), header["shape"], header["stride"], header.get("first", 0))
        case "dict":
            return {k: made(v) for k, v in header["items"].items()}
        case "list":
            return [made(v) for v in header["items"]]
        case "tuple":
            return tuple(made(v) for v in header["items"])
        case "dtype":
            return getattr(torch, header["value"])
        case _:
            return header["value"]


def _zeros(dtype: torch.dtype, shape: Sequence[int], stride: Sequence[int], first: int) -> torch.Tensor:
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if all(shape) else 0
    if reach == 0:
        return torch.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, (first + reach) * dtype.itemsize)
    flat = torch.frombuffer(pages, dtype=torch.uint8)
    return flat.view(dtype).as_strided(shape, stride, first)


class SkipsLarge(TorchFunctionMode):
    """Computes shapes only of operations on large tensors, within the context."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").removesuffix("_like")
        if name in CREATING:
            return self._created(func, name, args, kwargs)
        tensors = list(_tensors((args, kwargs)))
        size = max((one.numel() for one in tensors), default=0)
        products = name in PRODUCTS and _work(tensors) > WORK
        if (
            name in (*READING, *SHAPING)
            or not (products or size > LARGE)
            or any(one.layout != torch.strided for one in tensors)
        ):
            return func(*args, **kwargs)
        return self._shaped(func, name, args, kwargs)

    def _created(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        try:
            plain = {key: value for key, value in kwargs.items() if key not in ("generator", "out", "device")}
            shape = _moved(func, args, plain, create=True)
        except Exception:  # values decide on the shape
            return func(*args, **kwargs)
        return _like(shape) if shape.numel() > LARGE and not shape.requires_grad else func(*args, **kwargs)

    def _shaped(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return an operation's result without its values; views and operations without a shape are computed."""
        if name.endswith("_") and not name.startswith("__") and args and isinstance(args[0], torch.Tensor):
            return args[0]  # shape and type stay
        try:
            result = _moved(func, args, kwargs)
        except Exception:
            return func(*args, **kwargs)
        given = [one for one in _tensors((args, kwargs)) if one.is_floating_point()]
        made = list(_tensors(result))
        if not made or any(getattr(one, "_base", None) is not None or one._is_view() for one in made):  # pyright: ignore
            return func(*args, **kwargs)
        if any(one.requires_grad for one in given) and torch.is_grad_enabled():
            return func(*args, **kwargs)
        return pytree.tree_map_only(torch.Tensor, _like, result)


def _moved(func: Callable[..., Any], args: Any, kwargs: dict[str, Any], create: bool = False) -> Any:
    """Return an operation's result on torch's device without values."""

    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        return torch.device("meta") if isinstance(value, torch.device) else value

    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        places = pytree.tree_map(moved, (args, kwargs))
        return func(*places[0], **places[1], **({"device": "meta"} if create else {}))


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return _zeros(tensor.dtype, tensor.shape, tensor.stride(), 0)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    yield from (one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor))


def _work(tensors: list[torch.Tensor]) -> float:
    """Return an upper bound of the flops of a product of matrices."""
    if len(tensors) < 2 or not tensors[0].dim() or not tensors[1].dim():
        return 0.0
    return 2.0 * tensors[0].numel() * max(tensors[1].shape[-1], tensors[1].shape[-2] if tensors[1].dim() > 1 else 1)
