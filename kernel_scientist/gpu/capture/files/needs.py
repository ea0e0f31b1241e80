"""Finds out which names a module needs while it is imported, and which only later, inside of functions that it defines.

Kernels need their names at once. Imports only the standard library.
"""

import ast
from collections.abc import Iterable, Iterator


def at_once(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that a module's statements use when they are executed, and those that its kernels use."""
    nodes = (node for statement in body for part in _executed(statement) for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def is_kernel(node: ast.AST) -> bool:
    """Whether a function is one for the GPU, judged by its decorators (`@triton.jit`, `@gluon.jit(...)`, ...)."""
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list)


def _executed(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are executed with it."""
    match statement:
        case ast.FunctionDef() if is_kernel(statement):
            yield statement
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            yield from statement.decorator_list
            yield from (*args.defaults, *(default for default in args.kw_defaults if default is not None))
        case ast.ClassDef(bases=bases, keywords=keywords, body=body):
            yield from (*statement.decorator_list, *bases, *(word.value for word in keywords))
            for inner in body:
                yield from _executed(inner)
        case ast.If(test=test, body=body, orelse=orelse):
            yield test
            for inner in (*body, *orelse):
                yield from _executed(inner)
        case _:
            yield statement
