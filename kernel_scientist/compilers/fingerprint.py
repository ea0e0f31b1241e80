"""A kernel's fingerprint: the digest of its source without comments, layout, docstrings and site marks.

Sources with equal fingerprints are the same kernel, and only the first is built. Variable names are significant.
"""

import ast
import functools
import re

from kernel_scientist.compilers.source import without_comments
from kernel_scientist.records.kernel import digest
from kernel_scientist.records.syntax import parsed

_BLANKS = re.compile(r"\s+")
_LOOSE = re.compile(r"(?<!\w) | (?!\w)")


@functools.lru_cache(maxsize=4096)
def fingerprint(text: str) -> str:
    """Return a kernel file's fingerprint; for a file that is not Python, its digest without layout."""
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return digest(_BLANKS.sub(" ", text))
    return digest(ast.dump(_Plain().visit(tree)))


class _Plain(ast.NodeTransformer):
    """Transformer that drops docstrings and reduces multi-line strings (code) to their tokens."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Transform a node and its descendants."""
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and body and _is_text(body[0]):
            node.body = body[1:]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(_tokens(node.value))
        return super().visit(node)


def _is_text(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str)


def _tokens(code: str) -> str:
    """Return C-like code without comments and redundant blanks; line ends are kept for preprocessor lines."""
    lines = without_comments(code).splitlines()
    marked = [f"\x00{line}\x00" if line.lstrip().startswith("#") else line for line in lines]
    return _LOOSE.sub("", _BLANKS.sub(" ", "\n".join(marked))).strip()
