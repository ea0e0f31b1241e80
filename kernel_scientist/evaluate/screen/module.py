"""A kernel's file with its names resolved."""

import ast
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.speller import Speller
from kernel_scientist.evaluate.screen.syntax import Function, bound, imported, is_bound, is_plain, own_name
from kernel_scientist.evaluate.screen.tables import BUILTINS, HOMES, IMPORTERS, INTERNAL, JIT, LOAD

MOST_NAME = 200
"""Characters of a dotted name that are kept, of its beginning and its end."""


class Module:
    """A kernel's file with its names resolved through imports, aliases, `getattr` and assembled strings."""

    def __init__(self, tree: ast.Module, source: str) -> None:
        self.tree, self.source = tree, source
        kinds = ast.expr | ast.stmt | ast.arg | ast.MatchClass
        self.nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        self.functions = [node for node in self.nodes if isinstance(node, Function)]
        self.bindings = [pair for node in self.nodes for pair in bound(node)]
        self.aliases = {name: path for node in self.nodes for name, path in imported(node)}
        self._speller = Speller(self.bindings)
        self.text = self._speller.text
        self.handles: set[str] = set()
        """Names of loaded native libraries."""
        self._own = {node.name for node in self.functions} | {own_name(node) for node in self.nodes if is_bound(node)}
        jitted = [function for function in self.functions if any(map(self._jits, function.decorator_list))]
        self.jitted = {function.name for function in jitted}
        """Names of Triton kernels."""
        self.inside_jit = {id(node) for function in jitted for node in ast.walk(function)}
        for name, value in self.bindings * 2:  # twice: an alias of an alias
            self._resolve(name, value)
        self.references = list(self._references())
        """Every dotted name, the outermost of a chain only, its node, and whether it is called."""

    def _resolve(self, name: str, value: ast.expr) -> None:
        made = self.dotted(value.func) if isinstance(value, ast.Call) else None
        if made and LOAD.fullmatch(made):
            self.handles.add(name)
        elif isinstance(value, ast.Call) and self._jits(value):
            self.jitted.add(name)
        elif (path := self.dotted(value)) and path[0] != "~":
            self.aliases[name] = path

    @property
    def exhausted(self) -> bool:
        """Whether the file assembles more text than is read."""
        return self._speller.exhausted

    def value(self, node: ast.expr) -> ast.expr | None:
        """Return what a name is bound to, where that is one thing; any other expression as it is."""
        return self._speller.values.get(node.id) if isinstance(node, ast.Name) else node

    def launches(self, call: ast.Call) -> bool:
        """Whether a call launches a kernel, or builds one."""
        if isinstance(call.func, ast.Subscript):
            return own_name(call.func.value) in self.jitted
        path = self.dotted(call.func) or ""
        return path.startswith("native.") or bool(LOAD.fullmatch(path))

    def _jits(self, node: ast.AST) -> bool:
        return bool(JIT.match(self.dotted(node.func if isinstance(node, ast.Call) else node) or ""))

    def _references(self) -> Iterator[tuple[str, ast.expr, bool]]:
        inner: set[int] = set()
        called = {id(node.func) for node in self.nodes if isinstance(node, ast.Call)}
        for node in self.nodes:  # breadth first: an outer expression comes before its parts
            if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) or id(node) in inner:
                continue
            if (path := self.dotted(node, inner)) and not is_bound(node):
                yield path, node, id(node) in called

    def dotted(self, node: ast.AST, inner: set[int] | None = None) -> str | None:
        """Return the name from a module on, `native.x` for a loaded library's x, `~.x` for an attribute x of a value.

        Some modules are themselves wherever they are found: `torch.sys.modules` is `sys.modules`. Of a value's chain of
        attributes the last one is told, or all from one on that leads out of the kernel.

        None when the expression is no name. The ids of the expressions within the name are added to `inner`.
        """
        tail: list[str] = []
        while step := self._step(node):
            tail.append(step[0])
            node = step[1]
            if inner is not None:
                inner.add(id(node))
        names = [*(self._root(node) or "~").split("."), *reversed(tail)]
        return None if names == ["~"] else _path(names)

    def _step(self, node: ast.AST) -> tuple[str, ast.expr] | None:
        match node:
            case ast.Attribute(value=value, attr=attr):
                return attr, value
            case ast.Call(func=function, args=[value, name, *_]) if self._is(function, "getattr"):
                key = self.text(name)
            case ast.Subscript(value=ast.Attribute(value=value, attr="__dict__"), slice=name):
                key = self.text(name)
            case ast.Subscript(value=ast.Call(func=function, args=[value]), slice=name) if self._is(function, "vars"):
                key = self.text(name)
            case ast.Call(func=function, args=[value]) if self._is(function, "vars"):
                key = "__dict__"
            case _:
                return None
        return (key, value) if key else None

    def _is(self, function: ast.expr, name: str) -> bool:
        return is_plain(function) and self.dotted(function) == name

    def _root(self, node: ast.AST) -> str | None:
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Call(func=function, args=[name, *_]) if is_plain(function):
                return self.text(name) if self.dotted(function) in IMPORTERS else None
            case ast.Subscript(value=value, slice=name) if is_plain(value):
                return self.text(name) if self.dotted(value) in ("sys.modules", "__builtins__") else None
            case ast.Subscript(value=ast.Call(func=ast.Name(id="globals" | "locals" | "vars"), args=[]), slice=name):
                return self._named(self.text(name) or "")
            case _:
                return None

    def _named(self, name: str) -> str | None:
        if name in self.handles:
            return "native"
        if name in self.aliases or name in BUILTINS:
            return self.aliases.get(name, name)
        return f"{self.aliases['*']}.{name}" if "*" in self.aliases and name not in self._own else None


def _path(names: list[str]) -> str:
    """Join a name's parts, from the last module on that is itself wherever it is found.

    What a value's chain ends with is no module: `tuner.inspect()`.
    """
    value = names[0] == "~"
    homes = [i for i, name in enumerate(names[:-1] if value else names) if name.lstrip("_") in HOMES]
    if homes and names[0] not in ("native", "kernel_scientist"):
        names = [names[homes[-1]].lstrip("_"), *names[homes[-1] + 1 :]]
    elif value:
        names = ["~", *names[next((i for i, name in enumerate(names) if INTERNAL.fullmatch(name)), -1) :]]
    path = ".".join(names).removeprefix("builtins.")
    return path if len(path) <= MOST_NAME else path[: MOST_NAME // 2] + path[-MOST_NAME // 2 :]
