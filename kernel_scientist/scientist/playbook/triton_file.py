"""Parses and edits a Triton file: the kernel, its launch, the host code around the launch.

Positions come from the syntax tree; edits replace or insert text, so everything else stays unchanged.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.records.syntax import parsed
from kernel_scientist.scientist.playbook.transformation import Apply, Variant
from kernel_scientist.scientist.roles import CpuInfo


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes [start, end) of a file by a text; inserts if start == end."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class TritonFile:
    """A file in which one function launches one kernel once."""

    source: KernelSource
    tree: ast.Module
    kernel: ast.FunctionDef
    host: ast.FunctionDef
    statement: ast.stmt
    """The statement of the host function that contains the launch."""
    launch: ast.Call

    @staticmethod
    @lru_cache(maxsize=16)
    def of(source: KernelSource) -> "TritonFile | None":
        """Return the parsed file; None if its structure differs (several launches in `custom_kernel`, an autotuner)."""
        tree = parsed(source.text)
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        kernels = {name: f for name, f in functions.items() if _is_plain_kernel(f)}
        host = functions.get("custom_kernel")
        launches = [(s, c) for s in (host.body if host else []) for c in _launches(s) if c[0] in kernels]
        if host is None or len(launches) != 1:
            return None
        (statement, (name, call)) = launches[0]
        return TritonFile(source, tree, kernels[name], host, statement, call)

    @cached_property
    def names(self) -> set[str]:
        """Return every identifier of the file."""
        nodes = list(ast.walk(self.tree))
        return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}

    @cached_property
    def parameters(self) -> list[str]:
        """Return the names of the kernel's parameters."""
        return [a.arg for a in self.kernel.args.args]

    @cached_property
    def grid(self) -> list[ast.expr]:
        """Return the dimensions of the launch's grid; empty if it is not written as a tuple."""
        assert isinstance(self.launch.func, ast.Subscript)
        index: ast.expr | None = self.launch.func.slice
        if isinstance(index, ast.Name):
            values = [v for n, v in assignments(self.host) if n == index.id]
            index = values[0] if len(values) == 1 else None
        return index.elts if isinstance(index, ast.Tuple) else []

    def code(self, node: ast.expr | ast.stmt) -> str:
        """Return a node's text."""
        edit = self.replaced(node, "")
        return self._data[edit.start : edit.end].decode()

    def argument(self, parameter: str) -> ast.expr | None:
        """Return the launch's argument for one of the kernel's parameters."""
        for keyword in self.launch.keywords:
            if keyword.arg == parameter:
                return keyword.value
        at = self.parameters.index(parameter) if parameter in self.parameters else len(self.launch.args)
        return self.launch.args[at] if at < len(self.launch.args) else None

    def programs(self, axis: int) -> list[ast.Call]:
        """Return the kernel's calls of `tl.program_id` for an axis."""
        return [c for c in calls(self.kernel, "tl.program_id") if _axis(c) == axis]

    def axes(self) -> set[int]:
        """Return the axes of the grid that the kernel uses."""
        return {_axis(c) for c in calls(self.kernel, "tl.program_id")}

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Replace a node by a text."""
        return Edit(self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset), text)

    def margin(self, statement: ast.stmt) -> str:
        """Return a statement's indentation."""
        before = self._data[self._at(statement.lineno, 0) : self._at(statement.lineno, statement.col_offset)].decode()
        return before if before.isspace() else " " * statement.col_offset

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Insert lines before a statement (and before a function's decorators), with its indentation."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        at, margin = self._at(first, 0), self.margin(statement)
        return Edit(at, at, "".join(f"{margin}{line}".rstrip() + "\n" for line in lines))

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        """Insert lines after a statement, with its indentation."""
        at, margin = self._at(statement.end_lineno, statement.end_col_offset), self.margin(statement)
        return Edit(at, at, "".join(f"\n{margin}{line}".rstrip() for line in lines))

    def removed(self, statement: ast.stmt) -> Edit:
        """Remove a statement's lines."""
        return Edit(self._at(statement.lineno, 0), self._at((statement.end_lineno or 0) + 1, 0), "")

    def indented(self, statement: ast.stmt) -> list[Edit]:
        """Indent a statement's lines by one level."""
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        return [Edit(self._at(line, 0), self._at(line, 0), "    ") for line in lines]

    def appended(self, call: ast.Call, text: str) -> Edit:
        """Append an argument to a call, before any `**options`."""
        values = [*call.args, *(k.value for k in call.keywords if k.arg)]
        last = max(values, key=lambda v: (v.end_lineno or 0, v.end_col_offset or 0))
        start, end = (self._at(node.end_lineno, node.end_col_offset) for node in (last, call))
        closing = re.match(rb"(\s*\))*", self._data[start : end - 1])  # parentheses around the last argument
        at = start + (closing.end() if closing else 0)
        return Edit(at, at, f", {text}")

    def passed(self, name: str, value: str, kind: str = "") -> list[Edit]:
        """Add a parameter to the kernel, `kind` being its annotation, and an argument to the launch."""
        defaults = self.kernel.args.defaults  # after a parameter with a default, all have one
        last, default = (defaults[-1], "=0") if defaults else (self.kernel.args.args[-1], "")
        at = self._at(last.end_lineno, last.end_col_offset)
        return [Edit(at, at, f", {name}{kind}{default}"), self.appended(self.launch, f"{name}={value}")]

    def edited(self, *edits: Edit) -> KernelSource:
        """Return the file with the edits, which must not overlap."""
        data, out, at = self._data, b"", 0
        for edit in sorted(edits, key=lambda e: e.start):
            out, at = out + data[at : edit.start] + edit.text.encode(), edit.end
        return KernelSource((out + data[at:]).decode())

    def _at(self, line: int | None, column: int | None) -> int:
        return self._lines[(line or 1) - 1] + (column or 0)

    @cached_property
    def _data(self) -> bytes:
        return self.source.text.encode()

    @cached_property
    def _lines(self) -> list[int]:
        starts = [0]
        for line in self._data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts


CONSTANT = ": tl.constexpr"
"""The annotation of a compile-time constant."""


def structural(change: Callable[[TritonFile], Sequence[Variant]]) -> Apply:
    """Return a change of the file's structure as a catalogue edit.

    It gives no variants of files of another structure, or written so that the edited text is not Python.
    """

    def apply(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
        file = TritonFile.of(source)
        try:
            variants = change(file) if file else []
            for variant in variants:
                parsed(variant.source.text)
        except SyntaxError:
            return []
        return variants

    return apply


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """Return the calls of functions with these dotted names that have positional arguments, in the file's order."""
    matches = [n for n in ast.walk(node) if isinstance(n, ast.Call) and n.args and dotted(n.func) in names]
    return sorted(matches, key=lambda c: (c.lineno, c.col_offset))


def dotted(node: ast.expr) -> str:
    """Return a dotted name such as `tl.load`; empty for other expressions."""
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return a named argument of a call."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield every `name = value` and `name: type = value` in a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.Assign) and len(child.targets) == 1 and isinstance(child.targets[0], ast.Name):
            yield child.targets[0].id, child.value
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name) and child.value is not None:
            yield child.target.id, child.value


def bound(node: ast.AST) -> set[str]:
    """Return the names that a node assigns."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def read(node: ast.AST) -> set[str]:
    """Return the names that a node reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def loops(kernel: ast.FunctionDef, call: str) -> list[ast.For]:
    """Return the innermost loops over `range` or `tl.range` that contain a call of `call`."""
    every = [
        n
        for n in ast.walk(kernel)
        if isinstance(n, ast.For) and isinstance(n.iter, ast.Call) and dotted(n.iter.func) in ("range", "tl.range")
    ]
    matches = [n for n in every if calls(n, call)]
    return [n for n in matches if not any(m is not n and m in ast.walk(n) for m in matches)]


def has_several_products(kernel: ast.FunctionDef) -> bool:
    """Whether a loop has several statements with `tl.dot`, as attention's has: rules for one product's tiles, local
    memory and registers do not hold there."""
    return any(sum(bool(calls(s, "tl.dot")) for s in loop.body) > 1 for loop in loops(kernel, "tl.dot"))


def terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def _axis(call: ast.Call) -> int:
    value = call.args[0] if call.args else keyword(call, "axis")
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else -1


def _is_plain_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function has parameters and `triton.jit` as its only decorator."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return [dotted(d) for d in decorators] == ["triton.jit"] and bool(function.args.args)


def _launches(node: ast.AST) -> list[tuple[str, ast.Call]]:
    """Return the calls of the form `name[grid](...)`."""
    return [
        (n.func.value.id, n)
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) and isinstance(n.func.value, ast.Name)
        if n.args or any(k.arg for k in n.keywords)
    ]
