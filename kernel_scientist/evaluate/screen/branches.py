"""What a kernel decides by the input, or by how often it was called."""

import ast
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.finding import LOW, MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.names import library_lines
from kernel_scientist.evaluate.screen.syntax import count_within, is_literal, is_shape, own_name

PROBES = frozenset({"item", "tolist", "any", "all", "max", "min", "equal", "allclose", "count_nonzero", "is_nonzero"})


def branches(module: Module) -> Iterator[Finding]:
    """What is decided by literal sizes, by values of the input, or by how often the kernel was called."""
    assigned = [node for node in module.nodes if isinstance(node, ast.Assign) and is_shape(node.value)]
    targets = [inner for node in assigned for target in node.targets for inner in ast.walk(target)]
    shapes = {node.id for node in targets if isinstance(node, ast.Name)}
    outer = {name for node in module.nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    counted = [node.target for node in module.nodes if isinstance(node, ast.AugAssign)]
    counters = {own_name(t) for t in counted if isinstance(t, ast.Attribute) or own_name(t) in outer} - {""}
    for node in module.nodes:
        if isinstance(node, ast.Dict) and any(isinstance(key, ast.Tuple) and is_literal(key) for key in node.keys):
            yield Finding("hard-coded-shapes", LOW, node.lineno, "a table keyed by literal tuples")
        elif isinstance(node, ast.Match) and is_shape(node.subject, shapes):
            yield Finding("hard-coded-shapes", MEDIUM, node.lineno, "cases by shape")
        elif isinstance(node, ast.If | ast.IfExp | ast.While) and id(node) not in module.inside_jit:
            guard = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)  # chooses no path
            if not guard:
                yield from _decision(module, node.test, shapes, counters)


def _decision(module: Module, test: ast.expr, shapes: set[str], counters: set[str]) -> Iterator[Finding]:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(is_shape(side, shapes) for side in sides) and any(is_literal(module.value(side)) for side in sides):
                exact = isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                severity = MEDIUM if exact else LOW
                yield Finding("hard-coded-shapes", severity, node.lineno, "a branch on a size and a literal")
        elif isinstance(node, ast.Attribute) and node.attr in PROBES:
            yield Finding("input-probe", MEDIUM, node.lineno, f"a branch on .{node.attr}")
        if own_name(node) in counters:
            yield Finding("call-counter", MEDIUM, test.lineno, f"a branch on {own_name(node)}, which counts")


def fallbacks(module: Module) -> Iterator[Finding]:
    """A library's result where the kernel fails."""
    library = library_lines(module)
    launches = sorted(node.lineno for node in module.nodes if isinstance(node, ast.Call) and module.launches(node))
    for node in module.nodes:
        if isinstance(node, ast.Try):
            swallowing = [h.body for h in node.handlers if not isinstance(h.body[-1], ast.Raise)]
            tried = swallowing and count_within(launches, node.body)
            if any(count_within(library, body) for body in swallowing):
                yield Finding("fallback", MEDIUM, node.lineno, "an exception leads to a library call")
            elif tried and len(library) > count_within(library, node.body):
                yield Finding("fallback", MEDIUM, node.lineno, "a failed launch is survived, and a library is called")
            elif tried:
                yield Finding("fallback", LOW, node.lineno, "a failed launch is survived")
