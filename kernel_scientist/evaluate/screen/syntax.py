"""What a piece of Python's syntax says by itself, before any name is resolved."""

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
SIZES = frozenset({"shape", "size", "numel", "stride"})


def own_name(node: ast.AST) -> str:
    """Return a name's or an attribute's own name, without what stands before it; else an empty string."""
    return next((str(getattr(node, field)) for field in ("id", "attr", "arg") if hasattr(node, field)), "")


def is_bound(node: ast.AST) -> bool:
    """Whether a node binds its name: a parameter, or a name that is assigned."""
    return isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def is_plain(node: ast.AST) -> bool:
    """Whether an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what an import binds: name and dotted path; `*` is a name too."""
    if isinstance(node, ast.Import):
        for item in node.names:
            top = item.name.split(".")[0]
            yield item.asname or top, item.name if item.asname else top
    elif isinstance(node, ast.ImportFrom):
        for item in node.names:
            path = node.module or ""
            yield item.asname or item.name, path if item.name == "*" else f"{path}.{item.name}"


def bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that an assignment binds, with their values, where the two can be paired."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    else:
        return
    for target, value in pairs:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from ((t.id, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name))


def is_shape(node: ast.AST, names: Collection[str] = ()) -> bool:
    """Whether an expression is a size or a shape, or one of the names given, or a tuple with one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Tuple):
        return any(is_shape(item, names) for item in node.elts)
    name = own_name(node.func if isinstance(node, ast.Call) else node)
    return name in names if isinstance(node, ast.Name) else name in SIZES


def is_literal(node: ast.AST | None) -> bool:
    """Whether an expression is an integer above 1, or a collection of integers."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(is_literal, node.elts)) and all(isinstance(item, ast.Constant | ast.Tuple) for item in node.elts)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def count_within(lines: Sequence[int], body: Sequence[ast.stmt]) -> int:
    """Count the lines, which are sorted, that fall into a body of statements."""
    return bisect_right(lines, body[-1].end_lineno or 0) - bisect_left(lines, body[0].lineno)


def last_name(path: str | None) -> str:
    """Return what stands behind the last dot of a dotted name; an empty string where there is none."""
    return (path or "").rpartition(".")[2]
