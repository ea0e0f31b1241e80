"""What a kernel refers to by name."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from kernel_scientist.evaluate.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.syntax import last_name
from kernel_scientist.evaluate.screen.tables import (
    CLOCK,
    OUR_IMPORTS,
    PYTHON,
    REFLECTION,
    SETTERS,
    SETTINGS,
    TIMER,
    Rule,
)

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


_CODE_OF = frozenset({"__code__", "__globals__", "__class__", "__defaults__", "__closure__"})
"""What makes a function or an object another one when it is assigned."""


def patches(module: Module) -> Iterator[Finding]:
    """Assignments into what is not the kernel's own."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            path = module.dotted(node) or ""
        elif isinstance(node, ast.Call) and len(node.args) > 1 and last_name(module.dotted(node.func)) in SETTERS:
            path = f"{module.dotted(node.args[0]) or '~'}.{module.text(node.args[1]) or '?'}"
        else:
            continue
        name = last_name(path)
        owner = node.value if isinstance(node, ast.Attribute) and path[:1] == "~" else None
        its_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
        if not path or path.startswith(("torch.backends.", "native.")) or (its_own and name not in _CODE_OF):
            continue
        if TIMER.fullmatch(path) or CLOCK.fullmatch(name):
            yield Finding("timer-patch", HIGH, node.lineno, f"{path} is assigned")
        elif name in _CODE_OF or path[0] != "~":
            severity = MEDIUM if SETTINGS.fullmatch(path) else HIGH
            yield Finding("harness-patch", severity, node.lineno, f"{path} is assigned")
