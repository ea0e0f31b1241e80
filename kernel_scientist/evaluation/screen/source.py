"""A kernel's file in the form that rules match: Python names resolved through imports, C++ text without comments.

A match is a finding.
"""

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from kernel_scientist.records.syntax import parsed

MAX_NODES = 100_000
"""Largest syntax tree that is read, in nodes (about a second of work); an honest kernel has a few thousand."""
MAX_PATH = 200
"""Characters of a dotted name."""
IMPORTERS = ("builtins.__import__", "importlib.import_module", "importlib.__import__", "sys.modules.get")
BUILTINS = ("__import__", "setattr")
_LOOKS_CPP = re.compile(r'#\s*include|extern\s+"C"|__global__|\bvoid\s+\w+\s*\(|\w::\w')
_COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?"""
    r"""|(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\((?P<raw>[\s\S]*?\)(?P=mark)"|[\s\S]*)"""
    r"""|"(?P<text>(?:[^"\\\n]|\\.)*+)"?|(?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*+'?"""
)


class Severity(StrEnum):
    """Severity of a finding. HIGH: honest kernels hardly ever do this; LOW: they often do."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class RuleMatch(NamedTuple):
    """One match of a rule in a source."""

    name: str
    """Kebab-case, such as `tampering:patch` or `kernelguard:timer-monkeypatch`."""
    severity: Severity
    line: int | None
    """1-based line of the kernel's file; None for the whole file."""
    detail: str
    """Description of the match."""
    tampering: bool = False
    """Whether this finding rejects the kernel (unless the policy allows tampering)."""

    @property
    def words(self) -> str:
        """The finding as one line of evidence: where, if a line is known, and what."""
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.name}: {self.detail}"


class CppText:
    """C++, HIP or CUDA text within a kernel's file, with comments and literals blanked and offsets unchanged."""

    def __init__(self, text: str, node: ast.expr) -> None:
        self._first, self._last = node.lineno, node.end_lineno or node.lineno
        self.literals: list[tuple[int, str]] = []
        """Offset and content of each string literal."""
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self.code = _COMMENT_OR_LITERAL.sub(self._blank, text)

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset in the kernel's file."""
        return min(self._first + bisect_left(self._newlines, offset), self._last)

    def _blank(self, match: re.Match[str]) -> str:
        content = match["text"] if match["raw"] is None else match["raw"]
        if content is not None:
            self.literals.append((match.start(), content))
        blank = re.sub(r"[^\n]", " ", match[0])
        return blank if content is None else '"' + blank[1:]


class PythonFile:
    """A kernel's file. Raises SyntaxError, ValueError, RecursionError or MemoryError for text that cannot be read.

    The path of a node is the dotted name that it refers to, such as `torch.cuda.Event.elapsed_time`. It is resolved
    through imports, names that are assigned once, and `sys.modules` and `__dict__` with a literal key.
    """

    def __init__(self, text: str) -> None:
        self.nodes = list(islice(ast.walk(parsed(text)), MAX_NODES))
        if len(self.nodes) == MAX_NODES:
            raise ValueError(f"more than {MAX_NODES} nodes")
        self._imports = dict(pair for node in self.nodes for pair in _imported(node))
        self._bindings = Counter(name for node in self.nodes if (name := _bound(node)))
        pairs = [pair for node in self.nodes for pair in assigned(node)]
        self._values = {target.id: value for target, value in pairs if isinstance(target, ast.Name)}
        self._paths: dict[int, str] = {}
        self.strings = list(self._strings())
        """(node, text) of each string literal except docstrings; an f-string's values are replaced by `0`."""
        self.native = [CppText(text, node) for node, text in self.strings if _LOOKS_CPP.search(text)]

    def path(self, node: ast.AST | None) -> str:
        """Return the dotted name that a node refers to; empty if unknown."""
        if node is not None and id(node) not in self._paths:
            self._paths[id(node)] = ""  # ends the recursion if a name is assigned to itself
            path = self._resolved(node)
            self._paths[id(node)] = path if len(path) <= MAX_PATH else ""
        return self._paths.get(id(node), "")

    def _resolved(self, node: ast.AST) -> str:
        match node:
            case ast.Name(id=name) if name in self._imports:
                return self._imports[name]
            case ast.Name(id=name) if self._bindings[name] == 1:
                return self.path(self._values.get(name))
            case ast.Name(id=name) if name in BUILTINS and not self._bindings[name]:
                return f"builtins.{name}"
            case ast.Attribute(value=value, attr=name) if owner := self.path(value):
                return f"{owner}.{name}"
            case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)) if owner := self.path(value):
                if owner == "sys.modules":
                    return key
                return f"{owner.removesuffix('.__dict__')}.{key}" if owner.endswith(".__dict__") else ""
            case ast.Subscript(value=value, slice=key) if self.path(value) == "sys.modules":
                return "" if isinstance(key, ast.Name) and key.id == "__name__" else "sys.modules.?"
            case ast.Call(func=function, args=[ast.Constant(value=str() as name), *_]):
                return name if self.path(function) in IMPORTERS else ""
            case _:
                return ""

    def _strings(self) -> Iterator[tuple[ast.expr, str]]:
        skipped = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        for node in self.nodes:  # an f-string comes before its parts
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
                yield node, "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                yield node, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def is_literal(node: ast.AST | None) -> bool:
    """Whether an expression is a constant or a literal container, and therefore not a function."""
    return node is None or isinstance(node, ast.Constant | ast.Dict | ast.List | ast.Set | ast.Tuple)


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield (target, value) of each single target of an assignment; the value is None for a declaration."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case _:
            pass


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for item in node.names:
            yield item.asname or item.name.split(".")[0], item.name if item.asname else item.name.split(".")[0]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for item in node.names:
            yield item.asname or item.name, f"{node.module}.{item.name}"


def _bound(node: ast.AST) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()):
            return name
        case _:
            return None
