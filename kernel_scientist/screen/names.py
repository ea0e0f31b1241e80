"""What a kernel refers to by name."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from kernel_scientist.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.tables import OUR_IMPORTS, PYTHON, REFLECTION, Rule

_IF_CALLED, _UNLESS_TESTED = ("copy", "input-probe"), ("harness-patch", "obfuscation")


def named(module: Module) -> Iterator[Finding]:
    """What is referred to by name, and the matrix product's operator."""
    tested = set(map(id, _tested(module)))
    for path, node, called in module.references:
        if path in REFLECTION and not called:
            yield Finding("obfuscation", HIGH, node.lineno, f"{path} is handed on")
        triton_value = path[0] == "~" and id(node) in module.inside_jit  # its values have methods of the same names
        for rule in () if triton_value else _rules(path):
            harmless = not called if rule.label in _IF_CALLED else id(node) in tested and rule.label in _UNLESS_TESTED
            if not harmless:
                yield Finding(rule.label, rule.severity, node.lineno, path.replace("~", "(a value)"))
    for node in module.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for path in (start + item.name for item in node.names):
                if path.startswith("kernel_scientist") and not OUR_IMPORTS.fullmatch(path):
                    yield Finding("harness-patch", HIGH, node.lineno, f"{path} is imported")
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield Finding("library-call", MEDIUM, node.lineno, "the operator @")


def _tested(module: Module) -> Iterator[ast.expr]:
    """Expressions of which nothing but a truth is asked, as in `if gc:`, `"x" in sys.modules`, `hasattr(sys, "x")`."""
    for node in module.nodes:
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], left=left):
                yield left
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=others):
                yield from others
            case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                yield test
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield operand
            case ast.Call(func=ast.Name(id="hasattr" | "isinstance" | "issubclass" | "dir" | "len"), args=args):
                yield from args
            case ast.Delete(targets=targets):
                yield from targets
            case _:
                pass


def library_lines(module: Module) -> list[int]:
    """Return the lines of the calls of libraries, sorted."""
    return sorted(finding.line or 0 for finding in named(module) if finding.label == "library-call")


@lru_cache(4096)
def _rules(path: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in PYTHON if rule.pattern.fullmatch(path))
