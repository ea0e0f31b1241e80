"""What a kernel refers to by name."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from kernel_scientist.screen.finding import MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.tables import PYTHON, Rule


def named(module: Module) -> Iterator[Finding]:
    """What is referred to by name, and the matrix product's operator."""
    for path, node, called in module.references:
        triton_value = path[0] == "~" and id(node) in module.inside_jit  # its values have methods of the same names
        for rule in () if triton_value else _rules(path):
            if called or rule.label not in ("copy", "input-probe"):
                yield Finding(rule.label, rule.severity, node.lineno, path.replace("~", "(a value)"))
    for node in module.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield Finding("library-call", MEDIUM, node.lineno, "the operator @")


def library_lines(module: Module) -> list[int]:
    """Return the lines of the calls of libraries, sorted."""
    return sorted(finding.line or 0 for finding in named(module) if finding.label == "library-call")


@lru_cache(4096)
def _rules(path: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in PYTHON if rule.pattern.fullmatch(path))
