"""Follows torch's effects on memory between launches: allocations and writes.

`torch.empty` and similar functions return memory that was never written. Any other operation is assumed to write its
tensor arguments, so they count as defined afterwards. Copies and simple arithmetic pass codes from operands to results.
A call that returns an address ends the tracking of that memory. Imports only torch.
"""

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from triton.runtime import interpreter as _interpreter_module

from kernel_scientist.gpu.interpreter.allocations import Allocations
from kernel_scientist.gpu.interpreter.defect import UNKNOWN
from kernel_scientist.gpu.machine.allocations import EMPTY, tensors

LOOKING = frozenset((
    *("__get__", "__getitem__", "__len__", "__repr__", "__format__", "__hash__", "size", "stride", "numel", "dim"),
    *("storage_offset", "is_contiguous", "element_size", "get_device", "view", "view_as", "reshape", "flatten", "t"),
    *("transpose", "swapaxes", "permute", "squeeze", "unsqueeze", "expand", "expand_as", "narrow", "select", "split"),
    *("chunk", "unbind", "unflatten", "movedim", "as_strided", "diagonal", "detach", "is_floating_point", "nelement"),
    *("broadcast_to", "slice", "adjoint", "swapdims", "moveaxis", "requires_grad_", "tensor_split", "is_complex"),
))  # fmt: skip
"""Operations that neither read nor write elements: they inspect a tensor or make a view."""
COPYING = frozenset((
    *("to", "clone", "contiguous", "float", "half", "bfloat16", "double", "type_as", "add", "sub", "mul", "div"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "true_divide", "relu", "neg"),
))  # fmt: skip
"""Operations whose results are undefined where their operands are."""
SUMMING = frozenset(("sum", "mean", "amax", "amin"))
OVERWRITING = frozenset(
    ("zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "zeros_like", "ones_like", "full_like")
)
"""Operations that do not read their first argument."""
EXPOSING = frozenset(("data_ptr", "numpy", "__array__", "__dlpack__", "untyped_storage", "storage", "set_", "resize_"))
interpreter: Any = _interpreter_module


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


class TorchSide(TorchFunctionMode):
    """Follows torch's operations within the context."""

    def __init__(self, allocations: Allocations, partial: bool = False) -> None:
        """`partial`: parts of memory are unknown, so what an operation makes of them is unknown too."""
        super().__init__()
        self._allocations, self._suspended, self._partial = allocations, False, partial

    @contextlib.contextmanager
    def suspended(self) -> Generator[None]:
        """Pause within the context: the interpreter's own operations are not followed."""
        before, self._suspended = self._suspended, True
        try:
            yield
        finally:
            self._suspended = before

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self._suspended:
            return func(*args, **kwargs)
        if name in LOOKING:
            result = func(*args, **kwargs)
            if self._partial and isinstance(result, torch.Tensor):
                self._rearranged(func, args, kwargs, result)
            return result
        if name in COPYING or name in SUMMING:
            return self._computed(func, name, args, kwargs)
        if name == "__setitem__" and _is_view(part := args[0][args[1]], args[0]):
            func(*args, **kwargs)
            return self._written("copy_", (part, args[2]), {}, None)
        read = tensors((args[1:] if name in OVERWRITING else args, kwargs))
        unknown = self._partial and name != "copy_" and any(map(self._has_codes, read))
        result = func(*args, **kwargs)
        self._written(name, args, kwargs, result)
        if unknown:
            self._forget(args, kwargs, result, name)
        return result

    def _rearranged(self, func: Callable[..., Any], args: Any, kwargs: Any, result: torch.Tensor) -> None:
        """Pass codes on to a result that is a rearranged copy."""
        codes = self._codes(args[0] if args else None)
        if codes is not None and not _is_view(result, args[0]):
            self._put(result, func(codes, *args[1:], **kwargs))

    def _forget(self, args: Any, kwargs: Any, result: Any, name: str) -> None:
        """Mark what an operation wrote as unknown."""
        written = [*tensors(result), *tensors(kwargs.get("out")), *(tensors(args[:1]) if name.endswith("_") else ())]
        for tensor in written:
            self._put(tensor, torch.full(tensor.shape, UNKNOWN, dtype=torch.int16))

    def _written(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        for tensor in tensors(result):
            allocation = self._allocations.of(tensor)
            if name in EMPTY and allocation is not None and kwargs.get("out") is None:
                allocation.undefine(tensor)
        if name in EMPTY:
            return
        source = args[1] if name == "copy_" and len(args) > 1 else None
        for tensor in tensors((args, kwargs)):
            if (allocation := self._allocations.known(tensor)) is None or tensor is source:
                continue
            if name in EXPOSING:
                allocation.codes = None
            elif name != "copy_" or not self._passed_on([source], args[0]):
                allocation.define(tensor)

    def _computed(self, func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
        """Call a function whose result depends on its operands elementwise or along a dimension."""
        result = func(*args, **kwargs)
        if not isinstance(result, torch.Tensor) or any(result is each for each in tensors(args)):
            return result
        if (allocation := self._allocations.of(result)) is not None:
            allocation.define(result)
        operands = list(tensors(args))
        if name in SUMMING:
            self._summed(func, args, kwargs, result)
        elif not self._passed_on(operands, result) and self._partial and any(map(self._has_codes, operands)):
            self._put(result, torch.full(result.shape, UNKNOWN, dtype=torch.int16))
        for tensor in tensors(kwargs):
            if tensor is not result and (allocation := self._allocations.known(tensor)) is not None:
                allocation.define(tensor)
        return result

    def _codes(self, tensor: Any) -> torch.Tensor | None:
        """Return one code for every element, or None if all are defined."""
        allocation = self._allocations.known(tensor) if isinstance(tensor, torch.Tensor) else None
        codes = None if allocation is None else allocation.codes_of(tensor)
        if codes is None or not bool(codes.any()):
            return None
        return codes.amax(-1)

    def _has_codes(self, tensor: Any) -> bool:
        return self._codes(tensor) is not None

    def _passed_on(self, operands: list[Any], result: torch.Tensor) -> bool:
        """Copy the codes of operands to the result; return whether there were any."""
        every = [c for operand in operands if (c := self._codes(operand)) is not None]
        found = [c.broadcast_to(result.shape) for c in every if fits(c, result)]
        return bool(found) and self._put(result, torch.stack(found).amax(0))

    def _summed(self, func: Callable[..., Any], args: Any, kwargs: Any, result: torch.Tensor) -> None:
        if (codes := self._codes(args[0] if args else None)) is None:
            return
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        keep = kwargs.get("keepdim", args[2] if len(args) > 2 else False)
        if isinstance(dim, int | list | tuple) or dim is None:
            summed = codes.amax() if dim is None else codes.amax(dim, keepdim=bool(keep))
            if summed.shape == result.shape:
                self._put(result, summed)

    def _put(self, result: torch.Tensor, codes: torch.Tensor) -> bool:
        allocation = self._allocations.of(result)
        if allocation is None:
            return False
        allocation.shadow("codes")
        if (own := allocation.codes_of(result)) is not None:
            own.copy_(codes.unsqueeze(-1).expand(own.shape))
        return True


def _is_view(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def fits(codes: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether codes can be broadcast to a result."""
    pairs = zip(reversed(codes.shape), reversed(result.shape), strict=False)
    return codes.dim() <= result.dim() and all(one in (1, other) for one, other in pairs)


def tensor_of(arg: Any) -> torch.Tensor | None:
    """Return the tensor of a launch argument that is or wraps one."""
    unwrapped = interpreter._unwrap_tensor(arg)
    return unwrapped if isinstance(unwrapped, torch.Tensor) else None


def named(names: list[str], args: Any, kwargs: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Return every tensor among a launch's arguments with its name, including those in tuples and descriptors."""
    for name, arg in itertools.chain(zip(names, args, strict=False), kwargs.items()):
        if isinstance(arg, interpreter.TensorDescriptor):
            yield from named([name], [arg.base], {})
        elif isinstance(arg, tuple | list):
            yield from named([f"{name}[{i}]" for i in range(len(arg))], arg, {})
        elif (tensor := tensor_of(arg)) is not None:
            yield name, tensor
