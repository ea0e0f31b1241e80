"""Reads what a file's own launches say of a kernel's arguments: constants, types of tensors, strides.

A launch is a call `kernel[grid](...)`. Its arguments are looked up in the function around it and in the module. Runs in
untrusted processes: imports the standard library, torch and triton only.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

DEPTH = 5
"""Assignments that are followed from an argument to its value."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = {"next_power_of_2": triton.next_power_of_2, "cdiv": triton.cdiv, "min": min, "max": max, "int": int}


@dataclass(frozen=True)
class Hint:
    """What a launch says of an argument. Fields that are None say nothing."""

    value: Any = None
    """A constant."""
    kind: torch.dtype | None = None
    """The type of a tensor's elements."""
    tensor: bool = False
    real: bool = False
    """Whether it is a Python float of unknown value."""
    flag: bool = False
    unit: bool = False
    """Whether it is the stride of the last dimension."""
    block: tuple[Any, ...] = ()
    """The block shape of a tensor descriptor, as hints."""


def hints(
    tree: ast.Module, kernel: str, names: list[str], space: Mapping[str, Any], fp8: torch.dtype | None = None
) -> dict[str, Hint]:
    """Return what the launches of a kernel say, by parameter: the first launch that says something of it counts.

    `fp8`: the type of tensors of which the documentation says that they are fp8, and not of which format.
    """
    found: dict[str, Hint] = {}
    for call, function in _launches(tree, kernel):
        scope = _Scope(function, space)
        given = (
            dict(zip(names, call.args, strict=False)) if not any(isinstance(a, ast.Starred) for a in call.args) else {}
        )
        given |= {word.arg: word.value for word in call.keywords if word.arg}
        for name, node in given.items():
            hint = scope.hint(node) or (Hint(kind=fp8, tensor=True) if fp8 and _is_fp8(node, function) else None)
            if hint is not None:
                found.setdefault(name, hint)
    return found


def of_fp8(tree: ast.Module, kernel: str) -> bool:
    """Return whether a kernel is launched with a tensor that the documentation around the launch calls fp8."""
    return any(_is_fp8(node, function) for call, function in _launches(tree, kernel) for node in call.args)


def _is_fp8(node: ast.expr, function: Function | None) -> bool:
    """Return whether an argument is a parameter that the docstring of the function around it says is fp8."""
    if function is None or not isinstance(node, ast.Name):
        return False
    told = rf"\b{re.escape(node.id)}\b[^.;]*?\b(?:fp8|float8)\b"
    return node.id in _Scope(function, {}).params and bool(re.search(told, ast.get_docstring(function) or "", re.I))


def _launches(tree: ast.Module, kernel: str) -> Iterator[tuple[ast.Call, Function | None]]:
    def visit(node: ast.AST, function: Function | None) -> Iterator[tuple[ast.Call, Function | None]]:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Call(func=ast.Subscript(value=ast.Name(id=name))) if name == kernel:
                    yield child, function
                case _:
                    pass
            yield from visit(child, child if isinstance(child, Function) else function)

    yield from visit(tree, None)


class _Scope:
    """Looks names up in a function and its module."""

    def __init__(self, function: Function | None, space: Mapping[str, Any]) -> None:
        self.space = space
        self.assigned: dict[str, ast.expr] = {}
        self.params: set[str] = set()
        if function is None:
            return
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self.params = {argument.arg for argument in arguments}
        plain = [*function.args.posonlyargs, *function.args.args]
        defaults = zip(reversed(plain), reversed(function.args.defaults), strict=False)
        self.assigned |= {argument.arg: value for argument, value in defaults}
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.assigned[name] = value
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    pairs = zip(names, values, strict=False)
                    self.assigned |= {one.id: value for one, value in pairs if isinstance(one, ast.Name)}
                case _:
                    pass

    def hint(self, node: ast.expr, depth: int = DEPTH) -> Hint | None:
        """Return what an expression says."""
        if (value := self.constant(node, depth)) is not None:
            return Hint(value=value)
        match node:
            case ast.Name(id=name) if name in self.assigned and depth:
                return self.hint(self.assigned[name], depth - 1)
            case ast.IfExp(body=body, orelse=orelse):
                return self.hint(body, depth) or self.hint(orelse, depth)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Hint(flag=True)
            case ast.BinOp(op=ast.Div()):
                return Hint(real=True)
            case ast.Call(func=ast.Attribute(attr="stride"), args=[argument]):
                return Hint(unit=ast.unparse(argument) == "-1")
            case ast.Call(func=ast.Attribute(attr="stride")):
                return Hint()
            case ast.Call():
                return self._call(node, depth)
            case _:
                return None

    def _call(self, node: ast.Call, depth: int) -> Hint | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = {word.arg: word.value for word in node.keywords}
        if name in ("TensorDescriptor", "from_tensor"):
            shape = words.get("block_shape") or (node.args[-1] if node.args else None)
            parts = shape.elts if isinstance(shape, ast.List | ast.Tuple) else []
            return Hint(tensor=True, block=tuple(self.constant(part, depth) for part in parts))
        if name == "sqrt":
            return Hint(real=True)
        kinds = [words.get("dtype"), *(node.args[:1] if name in ("to", "view", "type") else [])]
        for place in kinds:
            kind = self.constant(place, depth) if place is not None else None
            if isinstance(kind, torch.dtype):
                return Hint(kind=kind, tensor=True)
        if name in ("contiguous", "view", "reshape", "clone", "detach", "flatten") and isinstance(
            node.func, ast.Attribute
        ):
            return self.hint(node.func.value, depth)
        return None

    def constant(self, node: ast.expr, depth: int = DEPTH) -> Any:
        """Return the value of an expression that depends on no argument of the function; else None."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Attribute(value=ast.Name(id="torch" | "tl"), attr=attr):
                value = getattr(torch, attr, None) or getattr(tl, attr, None)
                return value if isinstance(value, torch.dtype | tl.dtype) else None
            case ast.Name(id=name) if name in self.assigned and depth:
                return self.constant(self.assigned[name], depth - 1)
            case ast.Name(id=name) if name not in self.params:
                value = self.space.get(name)
                return value if isinstance(value, int | float | str | torch.dtype | tl.dtype) else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.constant(operand, depth)
                return -value if isinstance(value, int | float) else None
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in FUNCTIONS and not node.keywords:
                values = [self.constant(argument, depth) for argument in node.args]
                return FUNCTIONS[name](*values) if values and all(type(value) is int for value in values) else None
            case _:
                return None
