"""How a kernel hides what it names, and when it computes."""

import ast
import re
from collections.abc import Iterator

from kernel_scientist.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.screen.module import Module
from kernel_scientist.screen.syntax import Function, last_name, own_name
from kernel_scientist.screen.tables import IMPORTERS, SETTERS


def disguises(module: Module) -> Iterator[Finding]:
    """Names that are computed or assembled, identifiers outside ASCII, outputs that may be computed when looked at."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any(last_name(module.dotted(b)) == "Tensor" for b in node.bases):
            yield Finding("lazy-output", HIGH, node.lineno, f"{node.name} is a subclass of torch.Tensor")
        elif isinstance(node, Function) and node.name in ("__torch_dispatch__", "__torch_function__"):
            yield Finding("lazy-output", HIGH, node.lineno, f"{node.name} is defined")
        elif isinstance(node, ast.Call) and (name := module.dotted(node.func)):
            yield from _computed(module, node, name)
    if not module.source.isascii():
        yield from _lookalikes(module)


def _computed(module: Module, call: ast.Call, name: str) -> Iterator[Finding]:
    """The name that an import or a `getattr` is handed, where it is no constant."""
    if name in IMPORTERS:
        keys = call.args[:1]
    elif last_name(name) in ("getattr", *SETTERS):
        keys = call.args[1:2]
    else:
        return
    for key in keys:
        if not isinstance(key, ast.Constant):
            text = module.text(key)
            detail = f"the name {text} is assembled" if text else "a name is computed"
            severity = HIGH if name in IMPORTERS and not text else MEDIUM
            yield Finding("obfuscation", severity, call.lineno, detail)


def _lookalikes(module: Module) -> Iterator[Finding]:
    """Identifiers outside ASCII; Python reads some of them as the ASCII name that they look like."""
    lines = re.split(b"\r\n|\r|\n", module.source.encode("utf-8", "replace"))
    for node in module.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and (node.end_lineno or 0) <= len(lines):
            name, written = own_name(node), lines[(node.end_lineno or 1) - 1][: node.end_col_offset]
            if not name.isascii() or not written.endswith(name.encode()):
                yield Finding("obfuscation", HIGH, node.lineno, f"{name} is written with other characters than ASCII")
