"""Calls a file's entry function in the inspecting process.

The entry is a function, a `torch.autograd.Function`, or a module class such as `Model`, which is built with
`get_init_inputs()`. Its arguments are given, or those of the file's `get_inputs()`. Runs in untrusted processes:
imports the standard library, torch, and modules of this package that need no more.
"""

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernel_scientist.gpu.capture.files import large_tensors, missing


class EntryError(Exception):
    """The entry cannot be called with these inputs."""


def found(module: ModuleType, entry: str) -> Any:
    """Return the entry of that name, with dots for attributes. Raises EntryError."""
    value: Any = module
    for part in entry.split("."):
        value = getattr(value, part, None)
    if reason := missing.reason(value):
        raise EntryError(f"{entry}: {reason}")
    if value is None or not callable(value):
        raise EntryError(f"the file has no function {entry}")
    return value


def arguments(module: ModuleType, given: Mapping[str, Any] | None) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the named arguments: those described in `given`, or the file's own."""
    if given is None:
        return _listed(module, "get_inputs"), {}
    named = {name: large_tensors.made(header) for name, header in given.items()}
    return [], named


def _listed(module: ModuleType, name: str) -> list[Any]:
    function = getattr(module, name, None)
    if function is None:
        raise EntryError(f"no inputs: the file has no {name}(); give --inputs")
    value = function()
    return list(value) if isinstance(value, list | tuple) else [value]


def call(module: ModuleType, entry: str, positional: list[Any], named: dict[str, Any]) -> Any:
    """Call the entry. Named arguments whose names are no parameters are passed in their order."""
    function = found(module, entry)
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        function = function.apply
        positional, named = [*positional, *named.values()], {}
    elif isinstance(function, type):
        built = _listed(module, "get_init_inputs") if hasattr(module, "get_init_inputs") else []
        function = function(*built)
        positional, named = [*positional, *named.values()], {}
    if entry == "custom_kernel" and named:
        return function(tuple(named.values()) if len(named) > 1 else next(iter(named.values())))
    positional, named = _bound(function, positional, named)
    with torch.no_grad():
        return function(*positional, **named)


def _bound(function: Any, positional: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Pass arguments by name where the function has parameters of all their names; else in order."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [*positional, *named.values()], {}
    if all(name in parameters and parameters[name].kind is not parameters[name].POSITIONAL_ONLY for name in named):
        return positional, named
    return [*positional, *named.values()], {}
