"""Inspects a file as it lies in its package: its import, a call of its entry, and its kernels alone.

The entry is a function, a `torch.autograd.Function`, or a module class such as `Model`, which is built with
`get_init_inputs()`. Its arguments are given, or those of the file's `get_inputs()`.

Runs in the untrusted process: imports the standard library, torch, triton, and modules of this package.
"""

import ast
import inspect
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton.testing

from kernel_scientist.gpu.capture import large_tensors
from kernel_scientist.gpu.capture.files import importing, missing
from kernel_scientist.gpu.capture.files.statements import is_kernel
from kernel_scientist.gpu.capture.files.statements import words as plain
from kernel_scientist.gpu.capture.large_tensors import SkipsLarge
from kernel_scientist.gpu.capture.launches import LaunchRecorder, TorchRecorder
from kernel_scientist.gpu.capture.limits import cpu_seconds
from kernel_scientist.gpu.capture.reply import InspectionProgress, words

COUNT_S, TUNING_S, CALL_S = 5.0, 15.0, 60.0
"""Limits of one launch's counting, of one search of an autotuner, and of the entry's call."""
IMPORT = "import"
"""Name of the case of launches while the file is imported."""


def inspected(request: dict[str, Any], recorder: LaunchRecorder, reply: InspectionProgress) -> None:
    """Import the file, call its entry if there are inputs, and compile its other kernels alone."""
    recorder.count_s, recorder.tuning_s = COUNT_S, TUNING_S
    triton.testing.Mark.run = _unmeasured  # pyright: ignore[reportAttributeAccessIssue]
    module = _imported(request["file"], recorder, reply)
    if module is None:
        return
    if request["entry"] and (request["inputs"] is not None or hasattr(module, "get_inputs")):
        _called(module, request["entry"], request["inputs"], recorder)
        reply.write()
    if request["inputs"] is None or not recorder.launches:
        reply.keep(module, request["skip"], request["small"])
    for line, name in _inner(Path("kernel.py").read_text()):
        recorder.missed.append(f"no call: kernel.py, line {line}: {name} is defined inside of a function: give --entry")


def _unmeasured(*_: Any, **__: Any) -> None:
    """Replace a benchmark's run: nothing is measured here."""


def _imported(file: dict[str, Any], recorder: LaunchRecorder, reply: InspectionProgress) -> ModuleType | None:
    recorder.begin(IMPORT, ())

    def tell(line: int, what: str) -> None:
        recorder.missed.append(f"{IMPORT}: kernel.py, line {line}: {what}")

    try:
        with SkipsLarge():
            place, asked = (file["module"], file["path"], file["roots"]), recorder.facts.programs()
            return importing.imported(Path("kernel.py").resolve(), *place, asked, tell)
    except SyntaxError as error:
        reply.failure = f"kernel.py, line {error.lineno}: SyntaxError: {error.msg}"
        return None


def _called(module: ModuleType, entry: str, given: dict[str, Any] | None, recorder: LaunchRecorder) -> None:
    """Call the entry; report what keeps it from launching."""
    try:
        with cpu_seconds(CALL_S, entry), SkipsLarge():
            positional, named = arguments(module, given)
            recorder.begin(entry, [positional, named])
            with TorchRecorder(recorder):
                call(module, entry, positional, named)
    except EntryError as error:
        recorder.missed.append(f"{entry}: {error}")
    except Exception as error:
        told = words(error)
        recorder.missed.append(f"{entry}: {told if told.startswith('kernel.py') else plain(error)}")
    recorder.timed_out |= time.monotonic() > recorder.deadline


def _inner(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines and names of kernels that are defined inside of functions."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for node in ast.walk(function):
            if node is not function and isinstance(node, ast.FunctionDef) and is_kernel(node):
                yield node.lineno, node.name


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
