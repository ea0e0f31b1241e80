"""Whether a reply's file is complete, or stands for code that its reader is to take from elsewhere."""

import ast
import builtins
import re
from collections.abc import Iterable

from kernel_scientist.compilers.source import KernelSource, SourceError, defined_names, parsed
from kernel_scientist.scientist.llm.parsing import ReplyError

MAX_COMMENT, MAX_LISTED = 300, 5
_COMMENT = re.compile(r"(?:#|//|/\*)(.*)")
_PARTS = re.compile(
    r"\.\.\.|…|^ *\[.*\] *$|\b(?:rest|remainder|remaining|everything else|snip(?:ped)?|other (?:code|functions?|parts?)"
    r"|(?:code|kernels?|imports?|helpers?|functions?) (?:unchanged|omitted|identical|same))\b",
    re.I,
)
_SAME = re.compile(
    r"unchanged|as (?:before|above|is|in)\b|same\b|\bstays?\b|omitted|existing|identical|\bhere\b|\bsnip", re.I
)
"""In one comment the two say that it stands for code."""
_WORDS = re.compile(r"[^\w\n]*[A-Za-z][A-Za-z ,'-]*[^\w\n]*|[^\w\n]+")
"""A line of words, as of no programming language."""
_DECLARE = ("overload", "abstractmethod")
"""Decorators of functions whose body is `...`."""
_C_FUNCTION = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\([^(){};]*\)[ \t\n]*(?:const[ \t\n]*)?\{")
_C_WORDS = frozenset(("if", "for", "while", "switch", "catch", "else"))


def require_complete(source: str, base: str, others: Iterable[str] = ()) -> None:
    """Raise ReplyError for a file of which parts are left out.

    Such are the body of a function, what a comment stands for ("the rest is unchanged"), and names that only the base
    or another block of the reply (`others`) defines.
    """
    if (tree := _tree(source)) is None:
        if place := _broken_off(source):
            raise ReplyError(f"the file is not complete: {place}")
        return  # what else is wrong is said where it is compiled
    original = _tree(base) or ast.Module([], [])
    known, works = defined_names(original), {one.name for one in _functions(original) if not _is_empty(one)}
    for node in _functions(tree):
        body = _body(node)
        if (body and all(map(_is_dots, body))) or (_is_empty(node) and node.name in works):
            written = f"`{ast.unparse(body[-1])}`" if body else "empty"
            raise ReplyError(f"the file is not complete: the body of {node.name} is {written}")
        if any(map(_elides, ast.walk(node))):
            raise ReplyError(f"the file is not complete: `...` stands for code in {node.name}")
    gone = known - defined_names(tree) | _c_lacking(source, base)
    if gone and (comment := next(filter(_stands_for_code, source.split("\n")), "").strip()):
        raise ReplyError(f"the file is not complete: {comment[:80]!r} stands for {_listed(gone)}")
    lacking = _unbound(tree)
    if names := lacking & known:
        raise ReplyError(f"the file is not complete: it uses {_listed(names)}, which only the base defines")
    if names := lacking & {name for one in others if (other := _tree(one)) for name in defined_names(other)}:
        raise ReplyError(f"the file is not complete: another block defines {_listed(names)}; send one file")


def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return a file's functions, without declarations."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node for node in found if not any(ast.unparse(mark).endswith(_DECLARE) for mark in node.decorator_list)]


def _unbound(tree: ast.Module) -> set[str]:
    """Return the names that a file reads and binds nowhere, whatever the scope; none if it imports unnamed ones."""
    read, bound = set[str](), set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                bound.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.alias(name="*"):
                return set()
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
            case ast.Global(names=names):
                bound.update(names)
            case _:
                pass
    return read - bound


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    """Return a function's statements without its docstring."""
    return node.body[ast.get_docstring(node) is not None :]


def _is_dots(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, ast.Expr | ast.Return) else None
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def _elides(node: ast.AST) -> bool:
    """Whether one of a node's own statements stands for others; a loop that waits, and an error, may do nothing."""
    blocks = [getattr(node, name, ()) for name in ("body", "orelse", "finalbody")]
    may_be_empty = isinstance(node, ast.While | ast.ExceptHandler | ast.ClassDef | ast.Lambda | ast.IfExp)
    return not may_be_empty and any(_is_dots(one) for block in blocks for one in block)


def _broken_off(source: str) -> str:
    """Return where a file that is not Python stands for code that its reader is to take from elsewhere; or nothing."""
    try:
        parsed(source)
    except SyntaxError as error:
        line = source.split("\n")[(error.lineno or 1) - 1].strip()
        if "after function definition" in error.msg:
            return f"the body of a function is missing ({error.msg})"
        if len(line) < MAX_COMMENT and _WORDS.fullmatch(line) and (_PARTS.search(line) or _SAME.search(line)):
            return f"{line[:80]!r} stands for code"
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""


def _is_empty(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body does nothing. That can be meant, unless the base's function of that name does something."""
    return all(
        _is_dots(one)
        or isinstance(one, ast.Pass)
        or (isinstance(one, ast.Raise) and "NotImplemented" in ast.unparse(one))
        for one in _body(node)
    )


def _stands_for_code(line: str) -> bool:
    comment = _COMMENT.search(line) if len(line) < MAX_COMMENT else None
    return comment is not None and bool(_PARTS.search(comment[1]) and _SAME.search(comment[1]))


def _c_functions(source: str) -> set[str]:
    """Return the names of what looks like the definition of a function of C++, in the texts of a file."""
    return {found[1] for found in _C_FUNCTION.finditer(source)} - _C_WORDS


def _c_lacking(source: str, base: str) -> set[str]:
    """Return the functions of C++ that a file names and only the base defines."""
    lacking = _c_functions(base) - _c_functions(source)
    return lacking & set(re.findall(r"\w+", source)) if lacking else lacking


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)[:MAX_LISTED])


def _tree(source: str) -> ast.Module | None:
    try:
        return KernelSource(source).tree()
    except SourceError:
        return None
