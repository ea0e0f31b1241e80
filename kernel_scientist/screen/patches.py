"""What a kernel assigns into."""

import ast
from collections.abc import Iterator

from kernel_scientist.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.syntax import last_name
from kernel_scientist.screen.tables import CLOCK, SETTERS, TIMER

INTERNALS = frozenset({"__code__", "__globals__", "__class__", "__defaults__", "__closure__"})


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
        if not path or path.startswith(("torch.backends.", "native.", "self.")):
            continue
        if TIMER.fullmatch(path) or CLOCK.fullmatch(name):
            yield Finding("timer-patch", HIGH, node.lineno, f"{path} is assigned")
        elif name in INTERNALS or path[0] != "~":
            severity = MEDIUM if path.startswith("triton.") else HIGH  # its knobs may be turned honestly
            yield Finding("harness-patch", severity, node.lineno, f"{path} is assigned")
