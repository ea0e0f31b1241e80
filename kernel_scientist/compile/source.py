"""A kernel's file as something to edit: its declared tunables and flags, its marked sites.

A kernel may declare, as literals at module level, `TUNABLES = {"KC": 128}`, `CHOICES = {"KC": [128, 256]}` and
`FLAGS = ["-funroll-loops"]`, and mark sites in its C++ text with `// @begin name` and `// @end name` lines. Edits keep
everything else of the file as it was (libcst).
"""

import ast
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kernel_scientist.compile.request import MOST_SOURCE
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language

Value = int | str | float
C_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
"""A comment of C's, or a literal, in which there is none."""


class SourceError(ValueError):
    """The file is not what an edit needs; the message says what is missing."""


class NestedError(SourceError):
    """The file is Python that Python cannot read."""


@dataclass(frozen=True)
class KernelSource:
    """An immutable kernel file; every edit returns a new one."""

    text: str

    def literal(self, name: str) -> Any:
        """Return the value of a module-level literal, or None when there is none of that name."""
        for node in self.tree().body:
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                try:
                    return ast.literal_eval(node.value)
                except ValueError:
                    return None
        return None

    def defines(self, name: str) -> bool:
        """Whether the module defines a function or a variable of that name, in an `if` or a `try` too."""
        return any(name in _defined(statement) for statement in _statements(self.tree()))

    @property
    def tunables(self) -> dict[str, Value]:
        """Declared tunables and their values."""
        value = self.literal("TUNABLES")
        return cast(dict[str, Value], value) if isinstance(value, dict) else {}

    @property
    def choices(self) -> dict[str, list[Value]]:
        """What each tunable may be set to."""
        value = self.literal("CHOICES")
        return cast(dict[str, list[Value]], value) if isinstance(value, dict) else {}

    @property
    def flags(self) -> list[str]:
        """Extra compiler flags."""
        value = self.literal("FLAGS")
        return [str(v) for v in cast(list[Any], value)] if isinstance(value, list) else []

    def with_tunables(self, values: Mapping[str, Value]) -> "KernelSource":
        """Return the file with declared tunables set. Raises SourceError for one that is not declared."""
        if unknown := sorted(set(values) - set(self.tunables)):
            raise SourceError(f"no tunable {', '.join(unknown)}; declared: {', '.join(self.tunables) or 'none'}")
        return KernelSource(_set_entries(self.text, "TUNABLES", values))

    def with_flags(self, flags: Sequence[str]) -> "KernelSource":
        """Return the file with its FLAGS list replaced. Raises SourceError when it declares none."""
        if not isinstance(self.literal("FLAGS"), list):
            raise SourceError("the file declares no FLAGS list")
        return KernelSource(_set_literal(self.text, "FLAGS", repr(list(flags))))

    def site(self, name: str) -> str | None:
        """Return the text of a marked site, or None."""
        match = _site_pattern(name).search(self.text)
        return match["body"] if match else None

    def site_names(self) -> list[str]:
        """Return the names of all marked sites, in order."""
        names = re.findall(r"^[ \t]*(?://|#) @begin ([^\s]+)[ \t]*$", self.text, re.M)
        return [name for name in names if self.site(name) is not None]

    def with_site(self, name: str, body: str) -> "KernelSource":
        """Return the file with a marked site's text replaced. Raises SourceError when it is not marked."""
        match = _site_pattern(name).search(self.text)
        if match is None:
            raise SourceError(f"no site {name!r} (marked by // @begin {name} and // @end {name})")
        if not body.endswith("\n"):
            body += "\n"
        return KernelSource(self.text[: match.start("body")] + body + self.text[match.end("body") :])

    def tree(self) -> ast.Module:
        """Return the file as Python reads it. Raises SourceError for what is not Python."""
        try:
            return ast.parse(self.text)
        except SyntaxError as error:
            raise SourceError(f"line {error.lineno}: {error.msg}") from error
        except ValueError as error:  # a zero byte
            raise SourceError(str(error)) from error
        except (RecursionError, MemoryError) as error:  # Python's parser says either
            raise NestedError("its expressions are nested too deeply for Python's parser") from error


def read_kernel(path: Path) -> str:
    """Return a kernel file's text. Raises SetupError when it cannot be read or defines no `custom_kernel`.

    A file that is not Python is let through: that is the compiler's verdict to give.
    """
    try:
        known = path.stat()
        if not stat.S_ISREG(known.st_mode):  # of a pipe there is nothing left the second time
            raise SetupError(f"cannot read kernel {path}: it is no regular file")
        if known.st_size > MOST_SOURCE:
            raise SetupError(f"kernel {path} has {known.st_size} bytes: at most {MOST_SOURCE} are read")
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot read kernel {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        if not KernelSource(text).defines("custom_kernel"):
            raise SetupError(f"{path} defines no custom_kernel(data): a kernel is one Python file that does")
    except NestedError as error:
        raise SetupError(f"cannot read kernel {path}: {error}") from error
    except SourceError:
        pass
    return text


def leaderboard(text: str) -> str:
    """Return the leaderboard that a submission names in its first lines, or nothing."""
    found = re.search(r"^#!POPCORN leaderboard[s]? (\S+)", text, re.M)
    return found[1] if found else ""


def language_of(text: str) -> Language:
    """Guess a kernel file's language from what it uses: Triton's decorator, an inline HIP or CUDA source, else C++.

    Torch's `load_inline` without `cuda_sources` is C++ too. What comments and docstrings say does not count.
    """
    return "cpp" if _guess(text) == "cpp" else _guess(_code(text))


def _guess(text: str) -> Language:
    if re.search(r"@triton\.(jit|autotune)", text):
        return "triton"
    if re.search(r"hip/hip_|__hip_|--offload-arch", text):
        return "hip"
    if re.search(r"cuda_sources(?!\s*=\s*(None|\[\s*\]|''|\"\"))|__global__", text):
        return "cuda"
    return "cpp"


def _code(text: str) -> str:
    """Return a file without comments, docstrings, and the comments of the C++ in its strings.

    A file that cannot be parsed is returned as it is.
    """
    try:
        return ast.unparse(_Code().visit(KernelSource(text).tree()))
    except (SourceError, RecursionError):
        return text


class _Code(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if is_text else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(C_COMMENT.sub(_kept, node.value)) if isinstance(node.value, str) else node


def _kept(found: re.Match[str]) -> str:
    return found["literal"] or " "


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is imported."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        yield (node := waiting.pop())
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = (ast.stmt, ast.excepthandler, ast.match_case)
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, inner)]


def _defined(statement: ast.AST) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.ImportFrom(names=names):
            return {alias.asname or alias.name for alias in names}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return {name}
        case _:
            return set()


def _site_pattern(name: str) -> re.Pattern[str]:
    tag = re.escape(name)
    return re.compile(
        rf"^[ \t]*(?://|#) @begin {tag}[ \t]*\n(?P<body>.*?)^[ \t]*(?://|#) @end {tag}[ \t]*$", re.M | re.S
    )


def _set_entries(text: str, name: str, values: Mapping[str, Value]) -> str:
    import libcst as cst

    class Setter(cst.CSTTransformer):
        def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
            if not _assigns(original_node, name) or not isinstance(updated_node.value, cst.Dict):
                return updated_node
            elements = [_entry(element, values) for element in updated_node.value.elements]
            return updated_node.with_changes(value=updated_node.value.with_changes(elements=elements))

    def _entry(element: cst.BaseDictElement, values: Mapping[str, Value]) -> cst.BaseDictElement:
        if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
            key = element.key.evaluated_value
            if key in values:
                return element.with_changes(value=cst.parse_expression(repr(values[str(key)])))
        return element

    return cst.parse_module(text).visit(Setter()).code


def _set_literal(text: str, name: str, code: str) -> str:
    import libcst as cst

    class Setter(cst.CSTTransformer):
        def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
            return (
                updated_node.with_changes(value=cst.parse_expression(code))
                if _assigns(original_node, name)
                else updated_node
            )

    return cst.parse_module(text).visit(Setter()).code


def _assigns(node: Any, name: str) -> bool:
    import libcst as cst

    return any(isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets)
