"""Our own rules, one after the other."""

import ast
from collections.abc import Iterator
from itertools import islice

from kernel_scientist.evaluate.screen.branches import branches, fallbacks
from kernel_scientist.evaluate.screen.caches import caches
from kernel_scientist.evaluate.screen.decoys import decoys
from kernel_scientist.evaluate.screen.disguises import disguises
from kernel_scientist.evaluate.screen.finding import HIGH, LARGEST, MEDIUM, MOST, Finding
from kernel_scientist.evaluate.screen.module import Module
from kernel_scientist.evaluate.screen.names import named, patches
from kernel_scientist.evaluate.screen.strings import strings
from kernel_scientist.evaluate.screen.tables import HIDDEN, JUDGE, LOAD
from kernel_scientist.records.kernel import Language

RULES = (named, strings, patches, disguises, branches, caches, fallbacks, decoys)


def findings(source: str, language: Language) -> Iterator[Finding]:
    """Yield what our own rules see, in no order: `screen` without kernelguard. Never raises."""
    for pattern, label, severity in ((JUDGE, "judge-addressed", MEDIUM), (HIDDEN, "obfuscation", HIGH)):
        for match in islice(pattern.finditer(source), MOST):
            yield Finding(label, severity, source.count("\n", 0, match.start()) + 1, match[0])
    try:
        tree = ast.parse(source)
        if sum(1 for _ in islice(ast.walk(tree), LARGEST)) == LARGEST:
            yield Finding("too-long", HIGH, None, f"more than {LARGEST} parts of expressions are not screened")
            return
        module = Module(tree, source)
    except (SyntaxError, ValueError) as error:
        yield Finding("unreadable", MEDIUM, None, f"not Python: {error}")
        return
    except (RecursionError, MemoryError):
        yield Finding("unreadable", HIGH, None, "nested too deeply to be read")
        return
    for rule in RULES:
        try:
            yield from rule(module)
        except RecursionError:
            yield Finding("unreadable", HIGH, None, "nested too deeply to be read")
    loaded = any(LOAD.fullmatch(path) for path, _, _ in module.references)
    if not (module.jitted if language == "triton" else loaded):
        yield Finding("no-kernel", MEDIUM, None, f"no {language} kernel is defined here")
