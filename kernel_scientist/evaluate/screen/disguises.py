"""How a kernel hides what it names, and when it computes."""

import ast
import re
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.syntax import Function, last_name, own_name
from kernel_scientist.evaluate.screen.tables import HOMES, IMPORTERS, INTERNAL, SETTERS


def disguises(module: Module) -> Iterator[Finding]:
    """Names that are computed or assembled, identifiers outside ASCII, outputs that may be computed when looked at."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any(last_name(module.dotted(b)) == "Tensor" for b in node.bases):
            yield Finding("lazy-output", HIGH, node.lineno, f"{node.name} is a subclass of torch.Tensor")
        elif isinstance(node, Function) and node.name in ("__torch_dispatch__", "__torch_function__"):
            yield Finding("lazy-output", HIGH, node.lineno, f"{node.name} is defined")
        elif isinstance(node, ast.MatchClass) and any(map(_leads_out, node.kwd_attrs)):
            yield Finding("obfuscation", HIGH, node.lineno, f"a pattern takes {', '.join(node.kwd_attrs)}")
        elif isinstance(node, ast.Call) and (name := module.dotted(node.func)):
            yield from _computed(module, node, name)
    if not module.source.isascii():
        yield from _lookalikes(module)


def _leads_out(name: str) -> bool:
    """Whether an attribute's dotted name leads out of the kernel."""
    return any(part in HOMES or part == "modules" or INTERNAL.fullmatch(part) for part in name.split("."))


def _computed(module: Module, call: ast.Call, name: str) -> Iterator[Finding]:
    """The name that an import, a `getattr` or an `attrgetter` is handed, where it is no constant."""
    if name in IMPORTERS:
        keys = call.args[:1]
    elif name in ("operator.attrgetter", "operator.methodcaller"):
        for text in map(module.text, call.args):
            if text is None or _leads_out(text):
                yield Finding("obfuscation", HIGH, call.lineno, f"{name} of {text or 'a computed name'}")
        return
    elif last_name(name) in ("getattr", *SETTERS):
        keys = call.args[1:2]
    else:
        return
    for key in keys:
        if not isinstance(key, ast.Constant):
            text = module.text(key)
            detail = f"the name {text} is assembled" if text else "a name is computed"
            known = text or isinstance(key, ast.Name | ast.JoinedStr)  # literals elsewhere, which are read there
            yield Finding("obfuscation", HIGH if name in IMPORTERS and not known else MEDIUM, call.lineno, detail)


def _lookalikes(module: Module) -> Iterator[Finding]:
    """Identifiers outside ASCII; Python reads some of them as the ASCII name that they look like."""
    lines = re.split(b"\r\n|\r|\n", module.source.encode("utf-8", "replace"))
    for node in module.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and (node.end_lineno or 0) <= len(lines):
            name, written = own_name(node), lines[(node.end_lineno or 1) - 1][: node.end_col_offset]
            if not name.isascii() or not written.endswith(name.encode()):
                severity = HIGH if name.isascii() else MEDIUM
                yield Finding("obfuscation", severity, node.lineno, f"{name} is written with more than ASCII")
