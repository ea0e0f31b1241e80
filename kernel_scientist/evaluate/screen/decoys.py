"""Kernels that are there only to be seen."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import cast

from kernel_scientist.evaluate.screen.finding import MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.names import library_lines
from kernel_scientist.evaluate.screen.syntax import Function, bound, count_within, is_shape, own_name

VIEWS = frozenset({"view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "flatten", "view_as"})


def decoys(module: Module) -> Iterator[Finding]:
    """Kernels that nothing reaches from `custom_kernel`, or whose result goes nowhere."""
    uses: dict[str, set[str]] = {}
    lines: dict[str, int] = {}
    for node in _statements(module.tree):
        names = [node.name] if isinstance(node, Function | ast.ClassDef) else [n for n, _ in bound(node)]
        for name in names:
            uses.setdefault(name, set()).update(_reached(node))
            lines.setdefault(name, node.lineno)
    kernels = (module.jitted | module.handles) & lines.keys()
    reached: set[str] = set()
    ahead = ["custom_kernel"] if "custom_kernel" in uses else [name for name in uses if name not in kernels]
    while ahead:
        name = ahead.pop()
        if name in uses and name not in reached:
            reached.add(name)
            ahead += uses[name]
    for name in kernels - reached:
        yield Finding("decoy", MEDIUM, lines[name], f"{name} is not called from custom_kernel")
    library = library_lines(module)
    for node in module.tree.body:
        if isinstance(node, Function) and id(node) not in module.inside_jit:
            yield from _discarded(module, node, bool(count_within(library, node.body)))


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield a module's statements, also those within its ifs, tries and withs."""
    stack: list[ast.AST] = [*tree.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Function | ast.ClassDef | ast.expr):
            stack += ast.iter_child_nodes(node)


def _reached(node: ast.AST) -> Iterator[str]:
    """Yield the names a statement may use, without those that a constant condition or a return keeps it from."""
    stack: list[ast.AST] = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # as in globals()["kernel"]
        truth = _truth(node.test) if isinstance(node, ast.If | ast.While | ast.IfExp) else None
        dead = None if truth is None else "orelse" if truth else "body"
        for field in node._fields:
            value = getattr(node, field) if field not in (dead, "ctx") else None
            for item in cast(list[object], value) if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    stack.append(item)
                if isinstance(item, ast.Return | ast.Raise):
                    break


def _truth(test: ast.AST) -> bool | None:
    """Return what a condition always is, or None."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = _truth(operand)
            return None if truth is None else not truth
        case ast.BoolOp(op=op, values=values):
            ends = isinstance(op, ast.Or)
            return ends if any(_truth(value) is ends for value in values) else None
        case ast.Compare(
            left=ast.Constant(value=a), ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=b)]
        ):
            return (a == b) is isinstance(op, ast.Eq)
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[ast.Constant(value=0)]) if is_shape(left):
            return False
        case _:
            return None


def _discarded(module: Module, function: Function, library: bool) -> Iterator[Finding]:
    """Launches into buffers that nobody reads, while a library computes the result or without any of the data."""
    inside = list(ast.walk(function))
    reads = Counter(node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    fresh = {name for node in inside for name, value in bound(node) if _allocates(module, value)}
    returns = [node.value for node in inside if isinstance(node, ast.Return) and node.value is not None]
    out = {_viewed(item) for value in returns for item in (value.elts if isinstance(value, ast.Tuple) else [value])}
    for node in inside:
        if isinstance(node, ast.Call) and module.launches(node):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            given = {name for value in values if (name := _viewed(value)) in reads}
            here = Counter(own_name(inner) for inner in ast.walk(node))
            unread = {name for name in given & fresh if reads[name] == here[name]}
            if returns and unread == given & fresh and not given & out and (library or unread == given) and unread:
                yield Finding("decoy", MEDIUM, node.lineno, f"what is written to {min(unread)} is not read")


def _allocates(module: Module, node: ast.expr) -> bool:
    path = module.dotted(node.func) or "" if isinstance(node, ast.Call) else ""
    return path.startswith(("torch.empty", "torch.zeros", "torch.ones", "torch.full", "torch.rand", "~.new_"))


def _viewed(node: ast.AST) -> str:
    """Return the name of the tensor that an expression is, or is a view of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS:
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""
