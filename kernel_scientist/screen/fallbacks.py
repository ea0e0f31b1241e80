"""Failures that a kernel survives."""

import ast
from collections.abc import Iterator

from kernel_scientist.screen.finding import LOW, MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.names import library_lines
from kernel_scientist.screen.syntax import count_within


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
