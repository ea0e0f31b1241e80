"""The strings that a kernel's expressions spell."""

import ast
from collections.abc import Iterable, Sequence
from itertools import islice

from kernel_scientist.evaluate.screen.finding import LONGEST

MOST_SPELLED = 4 * LONGEST
"""Characters of assembled strings that are read of one file."""


class Speller:
    """Reads the strings that constants spell: added, joined, formatted, reversed, made from numbers, given a name."""

    def __init__(self, bindings: Iterable[tuple[str, ast.expr]]) -> None:
        self.values: dict[str, ast.expr | None] = {}
        """What a name is bound to; None when it is bound more than once."""
        for name, value in bindings:
            self.values[name] = None if name in self.values else value
        self._known: dict[int, str | None] = {}
        self._left = MOST_SPELLED

    def text(self, node: ast.AST | None, depth: int = 0) -> str | None:
        """Return the string that an expression spells, or None."""
        if node is None or depth > 40:
            return None
        if id(node) not in self._known:
            self._known[id(node)] = None  # a name bound to itself ends here
            text = self._read(node, depth + 1) if self._left > 0 else None
            self._left -= 0 if isinstance(node, ast.Constant | ast.Name) else len(text or "")
            self._known[id(node)] = text
        return self._known[id(node)]

    @property
    def exhausted(self) -> bool:
        """Whether so much was spelled that the rest is not read."""
        return self._left <= 0

    def _read(self, node: ast.AST, depth: int) -> str | None:
        between = ""
        match node:
            case ast.Constant(value=str() | bytes() as value):
                return value if isinstance(value, str) else value.decode("latin-1")
            case ast.Name(id=name):
                parts: Sequence[ast.AST | None] = [self.values.get(name)]
            case ast.BinOp(op=ast.Add()):
                return self._sum(node, depth)
            case ast.JoinedStr(values=values):
                parts = values
            case ast.FormattedValue(value=value):
                parts = [value]
            case ast.Subscript(value=value, slice=ast.Slice(step=ast.UnaryOp(op=ast.USub()))):
                return (self.text(value, depth) or "")[::-1] or None
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as between), attr="join"), args=[value]):
                if not isinstance(value, ast.List | ast.Tuple):
                    return _characters(value)
                parts = value.elts
            case ast.Call(func=ast.Attribute(value=value, attr="decode" | "encode" | "strip" | "lower")):
                parts = [value]
            case ast.Call(func=ast.Name(id="chr" | "str" | "bytes" | "bytearray"), args=[value, *_]):
                return self.text(value, depth) or _characters(value)
            case ast.Call(func=ast.Attribute(value=value, attr="replace"), args=[old, new]):
                parts = [value, old, new]
                whole, gone, put = (self.text(part, depth) or "" for part in parts)
                return whole.replace(gone, put) if gone and whole.count(gone) * len(put) < LONGEST else None
            case _:
                return None
        return _joined([self.text(part, depth) for part in parts], between)

    def _sum(self, node: ast.BinOp, depth: int) -> str | None:
        """Spell a sum, which is nested to the left, without recursion; each of its terms is read once."""
        sums: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
            sums.append(first)
            first = first.left
        start = self.text(first, depth)
        terms = [start or ""]
        size = len(terms[0])
        for i, inner in enumerate(reversed(sums)):
            term = self.text(inner.right, depth)
            size += len(term or "")
            if start is None or term is None or size > LONGEST:  # so no sum around it is a string that is read
                self._known.update((id(outer), None) for outer in sums[: len(sums) - i])
                return None
            terms.append(term)
        return "".join(terms)


def _joined(texts: Sequence[str | None], between: str = "") -> str | None:
    size = sum(len(text or "") + len(between) for text in texts)
    return None if None in texts or size > LONGEST else between.join(text or "" for text in texts)


def _characters(node: ast.AST) -> str | None:
    """Spell the first list of code points in an expression, as in `bytes([..])` or `map(chr, [..])`; or one of them."""
    for inner in islice(ast.walk(node), 16):  # such a list is near the top
        items = inner.elts if isinstance(inner, ast.List | ast.Tuple) else [inner]
        codes = [e.value for e in items if isinstance(e, ast.Constant) and isinstance(e.value, int)]
        if codes and len(codes) == len(items) and all(0 <= code < 0x110000 for code in codes):
            return "".join(map(chr, codes))
    return None
