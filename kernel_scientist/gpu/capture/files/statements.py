"""Executes a module statement by statement: one that fails does not keep the rest from being defined.

What a failed statement would have defined is a `Missing`. Runs in untrusted processes: imports the standard library and
modules of this package that need no more.
"""

import __future__

import ast
import contextlib
import functools
import importlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_scientist.gpu.capture.files.missing import Missing
from kernel_scientist.gpu.capture.limits import TimeLimitError, cpu_seconds

STATEMENT_S = 20.0
"""CPU seconds of one statement at a module's top level."""
WORDS = 300
REAL = {"triton": "triton", "tl": "triton.language"}
"""Names of Triton that packages pass on, sometimes replaced where they see no GPU."""
Told = Callable[[int, str], None]


class Namespace(dict[str, Any]):
    """A module's names. Those of `waiting` are imported when they are first asked for."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(vars(module))
        self.waiting: dict[str, Callable[[], None]] = {}

    def __missing__(self, name: str) -> Any:
        if name not in self.waiting:
            raise KeyError(name)
        self.waiting.pop(name)()
        return self[name]


class Module:
    """A module that is executed; failures are told with their lines."""

    def __init__(self, filename: str, module: ModuleType, lazy: Collection[str], tell: Told) -> None:
        """`lazy`: the packages of which names are imported only when they are needed."""
        self.filename, self.module, self.lazy, self.tell = filename, module, lazy, tell
        self.namespace = Namespace(module)
        self.flags, self.needed = 0, set[str]()

    def execute(self, text: str) -> None:
        """Execute a module's text. Raises SyntaxError."""
        tree, own = ast.parse(text, self.filename), vars(self.module)
        own["__getattr__"] = self._attribute
        self.namespace["__doc__"] = ast.get_docstring(tree, clean=False)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.flags |= sum(getattr(__future__, alias.name).compiler_flag for alias in node.names)
        self.needed = at_once(tree.body)
        self.body(tree.body)
        own.update(self.namespace)

    def _attribute(self, name: str) -> Any:
        """Return a name that is not yet in the module's dictionary."""
        try:
            value = self.namespace[name]
        except KeyError:
            raise AttributeError(f"module {self.module.__name__!r} has no attribute {name!r}") from None
        vars(self.module)[name] = value
        return value

    def body(self, statements: list[ast.stmt]) -> None:
        """Execute statements."""
        for statement in statements:
            if isinstance(statement, ast.If):
                self.body(statement.body if self._holds(statement) else statement.orelse)
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                self._import(statement)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                self._one(statement)

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Import what is needed at once; the rest of it when it is asked for."""
        module = getattr(statement, "module", None) or ""
        for alias in statement.names:
            name, single = alias.asname or alias.name.split(".")[0], _single(statement, alias)
            top = (module or alias.name).split(".")[0]
            own = bool(getattr(statement, "level", 0)) or top in self.lazy
            if alias.name == "*":
                self._star(statement, own)
            elif own and name not in self.needed and name not in REAL:
                self.namespace.pop(name, None)
                self.namespace.waiting[name] = functools.partial(self._imported, single, name)
            else:
                self._imported(single, name)
            real = REAL.get(alias.name) if own else None
            if real is not None:
                self.namespace[name] = importlib.import_module(real)

    def _star(self, statement: ast.Import | ast.ImportFrom, own: bool) -> None:
        """Import all names of a module, those that it has not imported itself when they are asked for."""
        try:
            name = "." * getattr(statement, "level", 0) + (getattr(statement, "module", None) or "")
            module = importlib.import_module(name, self.namespace.get("__package__"))
        except (Exception, SystemExit) as error:
            self.tell(statement.lineno, words(error))
            return
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            self.namespace.waiting[name] = functools.partial(self._copy, module, name)
            if not own or name in self.needed or self.namespace.get("__all__"):
                with contextlib.suppress(KeyError):
                    self.namespace.__missing__(name)

    def _copy(self, module: ModuleType, name: str) -> None:
        with contextlib.suppress(AttributeError):
            self.namespace[name] = getattr(module, name)

    def _imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        """Import one name; if that fails it is missing."""
        try:
            self._run(statement)
        except (Exception, SystemExit) as error:
            alias, module = statement.names[0], getattr(statement, "module", None)
            full = f"{'.' * getattr(statement, 'level', 0)}{module + '.' if module else ''}{alias.name}"
            self._miss(name, full, statement, error)

    def _holds(self, statement: ast.If) -> bool:
        try:
            code = compile(ast.Expression(statement.test), self.filename, "eval", self.flags, dont_inherit=True)
            return bool(eval(code, self.namespace))
        except Exception as error:
            self.tell(statement.lineno, words(error))
            return False

    def _run(self, statement: ast.stmt) -> None:
        late = isinstance(statement, ast.FunctionDef) and not is_kernel(statement)
        flags = self.flags | (__future__.annotations.compiler_flag if late else 0)  # annotations need no imports
        code = compile(ast.Module([statement], []), self.filename, "exec", flags, dont_inherit=True)
        with cpu_seconds(STATEMENT_S, f"line {statement.lineno}"):
            exec(code, self.namespace)

    def _one(self, statement: ast.stmt) -> None:
        try:
            self._run(statement)
        except (Exception, SystemExit) as error:
            self.tell(_place(error, self.filename) or statement.lineno, words(error))
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and statement.decorator_list:
                self._undecorated(statement)
            for name in _defined(statement):
                self._miss(name, name, statement, error)

    def _undecorated(self, statement: ast.FunctionDef | ast.ClassDef) -> None:
        """Define a function without the outermost decorators that fail."""
        while statement.decorator_list:
            statement.decorator_list.pop(0)
            with contextlib.suppress(Exception):
                self._run(statement)
                return

    def _miss(self, name: str, full: str, statement: ast.stmt, error: BaseException) -> None:
        why = f"{Path(self.filename).name}, line {statement.lineno}: {words(error)}"
        self.namespace.setdefault(name, Missing(full, why))


def _single(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.Import | ast.ImportFrom:
    """Return a statement that imports one name."""
    if isinstance(statement, ast.Import):
        return ast.Import([alias], lineno=statement.lineno, col_offset=0)
    return ast.ImportFrom(statement.module, [alias], statement.level, lineno=statement.lineno, col_offset=0)


def words(error: BaseException) -> str:
    """Return an error's class and message."""
    if isinstance(error, TimeLimitError):
        return str(error)
    if isinstance(error, AssertionError):
        return "an assertion fails; values are not computed here"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {' '.join(lines)}"[:WORDS] if lines else type(error).__name__


def _place(error: BaseException, filename: str) -> int | None:
    """Return the last line of the file that an error passed through."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement would have defined."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if node is statement:
                yield node.name
                return
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def at_once(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that a module's statements use when they are executed, and those that its kernels use."""
    nodes = (node for statement in body for part in _executed(statement) for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def is_kernel(node: ast.AST) -> bool:
    """Whether a function is one for the GPU, judged by its decorators (`@triton.jit`, `@gluon.jit(...)`, ...)."""
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list)


def _executed(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are executed with it."""
    match statement:
        case ast.FunctionDef() if is_kernel(statement):
            yield statement
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            yield from statement.decorator_list
            yield from (*args.defaults, *(default for default in args.kw_defaults if default is not None))
        case ast.ClassDef(bases=bases, keywords=keywords, body=body):
            yield from (*statement.decorator_list, *bases, *(word.value for word in keywords))
            for inner in body:
                yield from _executed(inner)
        case ast.If(test=test, body=body, orelse=orelse):
            yield test
            for inner in (*body, *orelse):
                yield from _executed(inner)
        case _:
            yield statement
