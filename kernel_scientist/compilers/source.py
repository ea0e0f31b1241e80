"""A kernel's file and edits of it: declared tunables and flags, marked sites.

A kernel may declare, as literals at module level, `TUNABLES = {"KC": 128}`, `CHOICES = {"KC": [128, 256]}` and
`FLAGS = ["-funroll-loops"]`, and mark sites in its C++ text with `// @begin name` and `// @end name` lines. Edits keep
everything else of the file as it was.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.compilers.request import MOST_SOURCE
from kernel_scientist.records.base import read_text
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.syntax import parsed

Value = int | str | float
ENTRIES = ("custom_kernel", "ModelNew")
"""What a kernel's file defines: a function, or, for a KernelBench problem, a class."""
C_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
"""Pattern of a C comment or a literal (a literal's content is not a comment)."""


class SourceError(ValueError):
    """An edit is impossible because the file lacks something, which the message names."""


class NestedError(SourceError):
    """The file's expressions are nested too deeply for Python's parser."""


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
        return name in defined_names(self.tree())

    @property
    def tunables(self) -> dict[str, Value]:
        """Declared tunables and their values."""
        return self._declared("TUNABLES", dict)

    @property
    def choices(self) -> dict[str, list[Value]]:
        """Allowed values of each tunable."""
        return self._declared("CHOICES", dict)

    @property
    def flags(self) -> list[str]:
        """Extra compiler flags."""
        return [str(flag) for flag in self._declared("FLAGS", list)]

    def _declared(self, name: str, kind: type[Any]) -> Any:
        value = self.literal(name)
        return value if isinstance(value, kind) else kind()

    def with_tunables(self, values: Mapping[str, Value]) -> "KernelSource":
        """Return the file with declared tunables set. Raises SourceError for one that is not declared."""
        return self._with_entries("TUNABLES", values)

    def with_choices(self, choices: Mapping[str, Sequence[Value]]) -> "KernelSource":
        """Return the file with other allowed values of tunables. Raises SourceError for one without any."""
        return self._with_entries("CHOICES", {name: list(values) for name, values in choices.items()})

    def _with_entries(self, name: str, values: Mapping[str, object]) -> "KernelSource":
        declared = self._declared(name, dict)
        if unknown := sorted(set(values) - set(declared)):
            raise SourceError(f"no tunable {', '.join(unknown)}; declared: {', '.join(declared) or 'none'}")
        entries = [
            (value, repr(values[key.value]))
            for found in self._assigned(name)
            if isinstance(found, ast.Dict)
            for key, value in zip(found.keys, found.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in values
        ]
        return KernelSource(replaced(self.text, entries))

    def with_flags(self, flags: Sequence[str]) -> "KernelSource":
        """Return the file with its FLAGS list replaced. Raises SourceError when it declares none."""
        if not isinstance(self.literal("FLAGS"), list):
            raise SourceError("the file declares no FLAGS list")
        return KernelSource(replaced(self.text, [(found, repr(list(flags))) for found in self._assigned("FLAGS")]))

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        """Yield the values that the file assigns to a name, in functions too."""
        for node in ast.walk(self.tree()):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                yield node.value

    def site(self, name: str) -> str | None:
        """Return the text of a marked site, or None."""
        match = _site_pattern(name).search(self.text)
        return match["body"] if match else None

    def site_names(self) -> list[str]:
        """Return the names of all marked sites, in order."""
        names = re.findall(r"^[ \t]*(?://|#) @begin ([^\s]+)[ \t]*$", self.text, re.M)
        return [name for name in names if self.site(name) is not None]

    def with_site(self, name: str, body: str) -> "KernelSource":
        """Return the file with a marked site's text replaced; `body` may have the site's marks around it.

        Raises SourceError when the file has no such site.
        """
        match = _site_pattern(name).search(self.text)
        if match is None:
            raise SourceError(f"no site {name!r} (marked by // @begin {name} and // @end {name})")
        body = body if body.endswith("\n") else f"{body}\n"
        body = inner["body"] if (inner := _site_pattern(name).search(body)) else body
        return KernelSource(self.text[: match.start("body")] + body + self.text[match.end("body") :])

    def tree(self) -> ast.Module:
        """Return the file's syntax tree. Raises SourceError for a file that is not Python."""
        try:
            return parsed(self.text)
        except SyntaxError as error:
            raise SourceError(f"line {error.lineno}: {error.msg}") from error
        except ValueError as error:  # a zero byte
            raise SourceError(str(error)) from error
        except (RecursionError, MemoryError) as error:  # the parser raises either
            raise NestedError("expressions are nested too deeply for Python's parser") from error


def read_kernel(path: Path) -> str:
    """Return a kernel file's text. Raises SetupError when it cannot be read or defines no kernel (`ENTRIES`).

    A file that is not Python passes: its verdict is `compile_error`.
    """
    text = read_file(path)
    if not any(defines(path, text, name) for name in ENTRIES):
        raise SetupError(f"{path} defines no custom_kernel(data): a kernel is one Python file that does")
    return text


def read_file(path: Path) -> str:
    """Return the text of a file with kernels. Raises SetupError when it cannot be read."""
    try:
        if path.exists() and not path.is_file():  # a pipe cannot be read twice
            raise SetupError(f"cannot read kernel {path}: it is no regular file")
        if (size := path.stat().st_size) > MOST_SOURCE:
            raise SetupError(f"kernel {path} has {size} bytes: at most {MOST_SOURCE} are read")
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot read kernel {path}: {getattr(error, 'strerror', None) or error}") from error
    return read_text(path, "kernel ")


def defines(path: Path, text: str, name: str) -> bool:
    """Whether a file defines a name; also for a file that is not Python. Raises SetupError for one nested too deep."""
    try:
        return KernelSource(text).defines(name)
    except NestedError as error:
        raise SetupError(f"cannot read kernel {path}: {error}") from error
    except SourceError:
        return True


def leaderboard(text: str) -> str:
    """Return the leaderboard named in a submission's header, or an empty text."""
    found = re.search(r"^#!POPCORN leaderboard[s]? (\S+)", text, re.M)
    return found[1] if found else ""


def language_of(text: str) -> Language:
    """Guess a kernel file's language from its code without comments: `triton`, `hip`, `cuda`, else `cpp`.

    A file that uses torch's `load_inline` without `cuda_sources` is `cpp`.
    """
    return "cpp" if _guess(text) == "cpp" else _guess(_code(text))


def _guess(text: str) -> Language:
    if re.search(r"@triton\.(jit|autotune)", text):
        return "triton"
    if re.search(r"hip/hip_|__hip_|--offload-arch|PYTORCH_ROCM_ARCH", text):  # its HIP may be compressed
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
        return ast.Constant(without_comments(node.value)) if isinstance(node.value, str) else node


def without_comments(code: str) -> str:
    """Return C code with a blank in place of each comment."""
    return C_COMMENT.sub(lambda found: found["literal"] or " ", code)


def defined_names(tree: ast.Module) -> set[str]:
    """Return the names that a module defines or imports, in an `if` or a `try` too."""
    return {name for statement in statements(tree) for name in _defined(statement)}


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is imported."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        yield (node := waiting.pop())
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = (ast.stmt, ast.excepthandler, ast.match_case)
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, inner)]


def _defined(statement: ast.AST) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
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


def replaced(text: str, changes: Iterable[tuple[ast.expr, str]]) -> str:
    """Return a file with some expressions of its syntax tree, which must not overlap, replaced by texts."""
    data = text.encode()
    starts = [0, *itertools.accumulate(map(len, data.splitlines(keepends=True)))]
    for node, new in sorted(changes, key=lambda change: (change[0].lineno, change[0].col_offset), reverse=True):
        first, last = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1]
        data = data[:first] + new.encode() + data[last + (node.end_col_offset or 0) :]
    return data.decode()
