"""Finds the tensors among a launch's arguments, with the kernel's parameter names. Imports only torch and triton."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from triton.runtime import interpreter as _interpreter_module

interpreter: Any = _interpreter_module


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
