"""What a kernel assigns into."""

import ast
from collections.abc import Iterator

from kernel_scientist.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.syntax import last_name
from kernel_scientist.screen.tables import CLOCK, SETTERS, SETTINGS, TIMER

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
