"""The kernel in a reply: a whole file, or a change of the base as marked sites, search-and-replace pairs or a diff.

A diff is applied by its content, because models get line numbers wrong: the lines that a hunk keeps or removes must
occur in the base exactly once.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.compile.source import KernelSource, SourceError, defined_names
from kernel_scientist.scientist.llm.parsing import FencedBlock, ParsedReply, ReplyError, embedded

CODE = ("python", "py", "triton", "")
BEGIN_PATCH, END_PATCH = "*** Begin Patch", "*** End Patch"
"""Marks of another form of diff, which some models were trained on (`apply_patch`)."""
_ENTRY = re.compile(
    r"^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+(?:custom_kernel|ModelNew)\b|^(?:custom_kernel|ModelNew)\s*[:=]", re.M
)
_COMMENT = re.compile(r"(?:#|//)(.*)")
_PARTS = re.compile(r"\.\.\.|…|\b(?:rest|remainder|remaining|everything else|other (?:code|functions?|parts?))\b", re.I)
_SAME = re.compile(r"unchanged|as (?:before|above|is)\b|same\b|\bstays?\b|omitted|existing|identical|\bhere\b", re.I)
"""In one comment the two say that it stands for code."""
MAX_COMMENT = 300
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]', re.M)
_INCLUDES = re.compile(r'(?:[ \t]*(?:#[ \t]*include[ \t]*[<"][^\n]*)?\n)*[ \t]*#[ \t]*include[ \t]*[<"][^\n]*\n\n*')
MAX_SOURCE = 400_000
"""Characters of a kernel file."""


class PatchError(ReplyError):
    """A change does not apply to the base; a whole file can be sent instead."""


def kernel_from(reply: ParsedReply, base: str) -> str:
    """Return the complete source. Raises PatchError if the change does not apply, ReplyError if there is no kernel."""
    if cut := [b for b in reply.blocks if not b.closed]:
        raise ReplyError(f"the reply ends within a block of {len(cut[-1].text)} characters: it was cut off")
    sites = [b for b in reply.blocks if _site(b)]
    edits = [b for b in reply.blocks if SEARCH in b.text and REPLACE in b.text]
    diffs = [b for b in reply.blocks if b.language in ("diff", "patch")]
    if BEGIN_PATCH in reply.text and not any(BEGIN_PATCH in b.text for b in diffs):
        diffs.append(FencedBlock("diff", reply.text.partition(BEGIN_PATCH)[2].partition(END_PATCH)[0]))
    apart = {id(b) for b in (*sites, *edits, *diffs)}
    whole = [b.text for b in reply.blocks if b.language in CODE and id(b) not in apart and not _is_change(b.text)]
    if files := [text for text in whole if _ENTRY.search(text)] or ([] if apart or diffs else _in_json(reply)):
        # A reply may quote the base beside its own kernel.
        source = next((text for text in reversed(files) if text.strip() != base.strip()), base)
        _require_complete(source, base)
    elif sites or edits or diffs:
        source = _changed(base, sites, edits, diffs)
        if source == base:
            raise PatchError("the change does not alter the base")
    else:
        blocks = f"{len(reply.blocks)} fenced blocks, none with custom_kernel" if reply.blocks else "no fenced block"
        raise ReplyError(f"the reply contains no kernel: {blocks}")
    if len(source) > MAX_SOURCE:
        raise ReplyError(f"the kernel has {len(source)} characters; at most {MAX_SOURCE} are allowed")
    return source


def _is_change(text: str) -> bool:
    return SEARCH in text or BEGIN_PATCH in text


def _in_json(reply: ParsedReply) -> list[str]:
    """Return the kernels that a reply holds as strings of JSON: of a record, or of the call of a tool."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str) and "\n" in value:
            yield value
            if value.lstrip().startswith("{"):
                yield from (found for one in embedded(value) for found in strings(one))
        elif isinstance(value, dict | list):
            inner: Any = value.values() if isinstance(value, dict) else value
            yield from (found for one in inner for found in strings(one))

    return [text for value in embedded(reply.text) for text in strings(value) if _ENTRY.search(text)]


def _require_complete(source: str, base: str) -> None:
    """Raise ReplyError for a file of which parts are left out: a function without a body, "the rest is unchanged"."""
    try:
        tree = KernelSource(source).tree()
    except SourceError:
        return  # what is wrong is said where it is compiled
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            body = [one for one in node.body if not _is_docstring(one)]
            if body and all(isinstance(one, ast.Expr) and _is_dots(one.value) for one in body):
                raise ReplyError(f"the file is not complete: the body of {node.name} is `...`")
    comment = next(
        (line.strip() for line in source.split("\n") if len(line) < MAX_COMMENT and _stands_for_code(line)), ""
    )
    if comment and (gone := sorted(_defined(base) - defined_names(tree))):
        raise ReplyError(f"the file is not complete: {comment[:80]!r} stands for {', '.join(gone[:5])}")


def _stands_for_code(line: str) -> bool:
    comment = _COMMENT.search(line[:MAX_COMMENT])
    return comment is not None and bool(_PARTS.search(comment[1]) and _SAME.search(comment[1]))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _defined(source: str) -> set[str]:
    try:
        return defined_names(KernelSource(source).tree())
    except SourceError:
        return set()


def _changed(
    base: str, sites: Sequence[FencedBlock], edits: Sequence[FencedBlock], diffs: Sequence[FencedBlock]
) -> str:
    for block in sites:
        try:
            base = _with_site(base, _site(block), block.text)
        except SourceError as error:
            raise PatchError(str(error)) from error
    for block in edits:
        base = _replaced(base, block.text)
    for block in diffs:
        if block not in edits:
            base = _patched(base, block.text)
    return base


def _with_site(base: str, name: str, text: str) -> str:
    """Replace a site's text. `#include` lines at its top move to those of the file: a site may lie in a function.

    They stay where they are if the site has had includes before, as one at file scope may.
    """
    changed = KernelSource(base).with_site(name, text)
    body, top = changed.site(name) or "", None
    if not _INCLUDE.search(KernelSource(base).site(name) or ""):
        top = _INCLUDES.match(body)
    if top is None:
        return changed.text
    known = {line.strip() for line in base.split("\n")}
    new = [line for line in dict.fromkeys(map(str.strip, top[0].split("\n"))) if line and line not in known]
    return _including(changed.with_site(name, body[top.end() :]).text, name, new)


def _including(text: str, site: str, includes: Sequence[str]) -> str:
    """Insert `#include` lines after the last one before a site; if there is none, where its string begins."""
    before, mark, after = text.partition(f"@begin {site}")
    lines = before.split("\n")
    places = [i for i, line in enumerate(lines) if _INCLUDE.match(line)]
    places = places or [i for i, line in enumerate(lines) if '"""' in line]
    at = places[-1] + 1 if places else 0
    return "\n".join([*lines[:at], *includes, *lines[at:]]) + mark + after


def _site(block: FencedBlock) -> str:
    match = re.search(r"\bsite[=:][ ]?([\w.-]+)", block.info)
    return match[1] if match else ""


def _replaced(base: str, text: str) -> str:
    """Apply `SEARCH ... ======= ... REPLACE` pairs."""
    parts = re.split(rf"^[ \t]*{SEARCH}[ \t]*\n", text, flags=re.M)[1:]
    if len(parts) != text.count(SEARCH):
        raise PatchError(f"{text.count(SEARCH) - len(parts)} of the lines {SEARCH} hold something else as well")
    for number, part in enumerate(parts, start=1):
        body, closed, _ = part.partition("\n" + REPLACE)
        before, split, after = body.partition("\n" + MIDDLE)
        if not closed or not split:
            raise PatchError(f"pair {number} is not SEARCH, =======, REPLACE, each on a line of its own")
        base = _swap(base, _lines(before), _lines(after.removeprefix("\n")), f"pair {number}")
    return base


def _lines(text: str) -> list[str]:
    """Return a text's lines; other line separators of Unicode may stand in Python's strings."""
    return text.removesuffix("\n").split("\n") if text else []


def _patched(base: str, text: str) -> str:
    """Apply a unified diff's hunks by content."""
    hunks: list[tuple[list[str], list[str]]] = []
    for line in _lines(text):
        if line.startswith("@@"):
            hunks.append(([], []))
        elif not hunks or line.startswith(("\\", "diff ", "index ", "*** ")):
            continue
        elif line.startswith("-"):
            hunks[-1][0].append(line[1:])
        elif line.startswith("+"):
            hunks[-1][1].append(line[1:])
        else:  # context; models drop the space of an empty line
            for side in hunks[-1]:
                side.append(line[1:] if line.startswith(" ") else line)
    if not hunks:
        raise PatchError("the diff has no hunk (a line that begins with @@)")
    for number, (before, after) in enumerate(hunks, start=1):
        base = _swap(base, before, after, f"hunk {number}")
    return base


def _swap(base: str, before: list[str], after: list[str], part: str) -> str:
    """Replace lines that occur in the base exactly once; trailing spaces are ignored."""
    lines, wanted = base.split("\n"), [line.rstrip() for line in before]
    if not any(wanted):
        raise PatchError(f"{part} has no line of the base, so its position is unknown")
    stripped, count = [line.rstrip() for line in lines], len(wanted)
    positions = [i for i, line in enumerate(stripped) if line == wanted[0] and stripped[i : i + count] == wanted]
    if len(positions) != 1:
        first = next(line for line in wanted if line)[:80]
        raise PatchError(f"{part} ({first!r} ...) occurs {len(positions)} times in the base, not once")
    start = positions[0]
    return "\n".join([*lines[:start], *after, *lines[start + count :]])
