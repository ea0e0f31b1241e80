"""What a kernel's strings hold."""

import ast
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.cpp import Cpp
from kernel_scientist.evaluate.screen.finding import HIGH, MEDIUM, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.speller import MOST_SPELLED
from kernel_scientist.evaluate.screen.tables import LOOKS_CPP, STRINGS, matches


def strings(module: Module) -> Iterator[Finding]:
    """What strings hold: paths, flags, blobs, native sources."""
    used = {path.removeprefix("native.") for path, _, _ in module.references if path.startswith("native.")}
    read: set[str] = set()
    seen = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}  # docstrings
    for node in module.nodes:
        if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call) or id(node) in seen:
            continue
        text = module.text(node)
        if text is None and isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        if not text:
            continue
        seen |= {id(inner) for inner in ast.walk(node)}
        if text in read:
            continue
        read.add(text)
        if LOOKS_CPP.search(text):
            yield from _native(Cpp(text), node, used)
        else:
            for match, rule in matches(STRINGS, text):
                yield Finding(rule.label, rule.severity, node.lineno, match[0])
    if module.exhausted:
        yield Finding("too-long", HIGH, None, f"more than {MOST_SPELLED} characters of assembled strings")


def _native(cpp: Cpp, node: ast.expr, used: set[str]) -> Iterator[Finding]:
    last = node.end_lineno or node.lineno
    for finding in cpp.findings():
        yield finding._replace(line=min(node.lineno + (finding.line or 0), last))
    exports = dict(cpp.exports())
    if used and used.isdisjoint(exports):  # one that is called may leave variants that are not
        for name, line in exports.items():
            yield Finding("decoy", MEDIUM, min(node.lineno + line, last), f"{name} is exported and never called")
