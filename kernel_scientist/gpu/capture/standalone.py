"""Compiles each Triton kernel of a file by itself, with invented arguments, if no problem's inputs are available.

Pointers are assumed to be bf16, sizes integers; constants come from the file if it names them, otherwise a usual value
is assumed. The report names all assumptions. Runs in an untrusted process: imports the standard library, torch and
triton only.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

USUAL: tuple[tuple[str, Any], ...] = (
    (r"^(even|has|is|use|causal)", True),
    (r"group", 8),
    (r"block|tile|rows|cols|size|dim", 64),
    (r"warps|stages|split|num", 4),
    (r"dtype", "fp32"),
)
REALS = re.compile(r"eps|scale|alpha|beta|factor|momentum|(^|_)lr|prob", re.I)
ACCESS = re.compile(r"load|store|atomic|make_block_ptr|make_tensor_descriptor")
ELEMENTS = 1 << 20
"""Number of elements of an invented tensor."""


def compiled(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """Compile and yield every kernel that no other one calls, with a sentence about the assumptions.

    A kernel that does not compile this way is yielded as None, with the reason.
    """
    found = {
        name: value for name, value in vars(module).items() if isinstance(value, JITFunction | Autotuner | Heuristics)
    }
    called = {name for value in found.values() for name in _calls(_function(value))}
    for name, value in found.items():
        kernel, options = _function(value), _options(value)
        if name in called or kernel.fn.__module__ != module.__name__:
            continue
        arguments, words = _arguments(kernel, options, vars(module))
        try:
            yield kernel.run(*arguments, grid=(1, 1, 1), warmup=True, **_launch(options, kernel)), words
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            yield None, f"{words}; so it does not compile: {lines[-1]}"


def _function(value: Any) -> Any:
    while not isinstance(value, JITFunction):
        value = value.fn
    return value


def _options(value: Any) -> dict[str, Any]:
    """Return the first configuration of the autotuner among a kernel's decorators, if there is one."""
    while not isinstance(value, JITFunction):
        if isinstance(value, Autotuner) and value.configs:
            return dict(value.configs[0].all_kwargs())
        value = value.fn
    return {}


def _launch(options: Mapping[str, Any], kernel: Any) -> dict[str, Any]:
    names = {p.name for p in kernel.params}
    return {k: v for k, v in options.items() if k not in names and v is not None}


def _calls(kernel: Any) -> set[str]:
    tree = ast.parse(textwrap.dedent(kernel.src))
    return {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def _arguments(kernel: Any, options: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[list[Any], str]:
    tunables: Mapping[str, Any] = known.get("TUNABLES") if isinstance(known.get("TUNABLES"), dict) else {}  # pyright: ignore
    pointers = _pointers(kernel)
    arguments: list[Any] = []
    made: list[str] = []
    for param in kernel.params:
        default = kernel.signature.parameters[param.name].default
        given = {**({"": default} if default is not inspect.Parameter.empty else {})}
        for source in (tunables, options):
            given |= {"": source[param.name]} if param.name in source else {}
        value = given.get("", _made_up(param, pointers))
        made += [] if given or isinstance(value, torch.Tensor) else [f"{param.name} {value}"]
        arguments.append(value)
    told = f", {', '.join(made)}" if made else ""
    return arguments, f"{kernel.fn.__name__} was compiled by itself: pointers taken for bf16{told}"


def _made_up(param: Any, pointers: set[str]) -> Any:
    name = param.name.lower()
    if param.is_constexpr:
        return next((value for pattern, value in USUAL if re.search(pattern, name)), 64)
    if param.name in pointers:
        return torch.empty(ELEMENTS, dtype=torch.bfloat16)
    return 0.5 if REALS.search(name) else 1024


def _pointers(kernel: Any) -> set[str]:
    """Return the parameters that are pointers, judged by their names and by loads and stores through them."""
    params = {p.name for p in kernel.params if not p.is_constexpr}
    found = {name for name in params if re.search(r"ptr|pointer", name, re.I)}
    tree = ast.parse(textwrap.dedent(kernel.src))
    made = {
        t.id: n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ACCESS.match(node.func.attr):
            found |= {name for first in node.args[:1] for name in _base(first, made) if name in params}
    return found


def _base(node: ast.expr, made: Mapping[str, ast.expr], depth: int = 8) -> set[str]:
    """Return the names at the left end of a sum: the base of an address."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    if not isinstance(node, ast.Name):
        return set()
    return {node.id} | (_base(made[node.id], made, depth - 1) if node.id in made and depth else set())
