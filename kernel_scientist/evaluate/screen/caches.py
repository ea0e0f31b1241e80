"""What a kernel keeps from one call to the next."""

import ast
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.finding import HIGH, LOW, MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.syntax import SIZES, Function, own_name

ADDRESSES = frozenset({"data_ptr", "_version", "id", "untyped_storage", "storage"})
IDENTITY = ADDRESSES | {"hash", "item", "tolist", "tobytes", "sha256", "sha1", "md5"}
"""By what a tensor, or what it holds, is recognised in a later call."""
WRAPS = frozenset({"tuple", "list", "int", "str", "map", "frozenset", "hash", "id"})


def caches(module: Module) -> Iterator[Finding]:
    """Tables that outlive a call, and comparisons with an earlier call, by what a tensor is or holds."""
    keys: dict[str, str] = {}
    for name, value in module.bindings * 2:
        if kind := _key(value, keys):
            keys[name] = kind
    memos = {f.name for f in module.functions if any(_memoises(module, d) for d in f.decorator_list)}
    returned = {id(node.value) for node in module.nodes if isinstance(node, ast.Return)}
    for node in module.nodes:
        kind = _looked_up(node, keys, memos)
        line = getattr(node, "lineno", None)
        if kind in IDENTITY:
            yield Finding("replay-cache", HIGH, line, f"something kept is found by {kind}")
        elif kind and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield Finding("replay-cache", LOW, line, f"something is kept by {kind}")
        elif kind and id(node) in returned:
            yield Finding("replay-cache", MEDIUM, line, f"something kept by {kind} is returned")
        elif isinstance(node, Function) and node.name == "custom_kernel" and node.name in memos:
            yield Finding("replay-cache", HIGH, line, "custom_kernel is memoised")


def _memoises(module: Module, decorator: ast.expr) -> bool:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return module.dotted(made) in ("functools.cache", "functools.lru_cache")


def _looked_up(node: ast.AST, keys: dict[str, str], memos: set[str]) -> str | None:
    """Return by what an expression finds something kept, if it looks for that."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args) if name in memos:
            return _key(ast.Tuple(elts=args), keys)
        case (
            ast.Subscript(slice=key)
            | ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop"), args=[key, *_])
            | ast.Compare(left=key, ops=[ast.In() | ast.NotIn()])
        ):
            return _key(key, keys)
        case ast.Compare(left=ast.Call(), comparators=[ast.Call()]) | ast.Compare(comparators=[ast.Constant()]):
            return None  # whether two tensors of one call are the same
        case ast.Compare(left=left, comparators=[right]):
            kinds = {_key(left, keys), _key(right, keys)} & ADDRESSES
            return min(kinds, key=str, default=None)
        case _:
            return None


def _key(node: ast.AST, keys: dict[str, str]) -> str | None:
    """Return what stands for a tensor in a key: its address, version or values, or else its shape."""
    found: str | None = None
    stack = [node]
    while stack:
        node = stack.pop()
        kind: str | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd):
            continue  # an address's alignment
        if isinstance(node, ast.Name):
            kind = keys.get(node.id)
        elif isinstance(node, ast.Attribute):
            kind = node.attr
            stack.append(node.value)
        elif isinstance(node, ast.Call):
            kind = own_name(node.func)
            stack += [*node.args, node.func] if kind in WRAPS else [node.func]
        elif not isinstance(node, ast.Constant | ast.Lambda):
            stack += ast.iter_child_nodes(node)
        found = kind if kind in IDENTITY else found or (kind if kind in SIZES else None)
    return found
