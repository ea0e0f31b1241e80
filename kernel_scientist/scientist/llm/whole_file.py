"""A reply's complete kernel files: in blocks of code, as a text of JSON, in tags, or without any mark; none elided."""

import ast
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.compile.source import KernelSource, SourceError, defined_names
from kernel_scientist.scientist.llm.parsing import FencedBlock, ParsedReply, ReplyError
from kernel_scientist.scientist.llm.structured import embedded

CODE = ("python", "py", "python3", "triton", "")
OTHER = ("json", "yaml", "yml", "diff", "patch", "bash", "sh", "shell", "console", "markdown", "md")
"""Languages of blocks that hold no file, even if one stands in them."""
MAX_COMMENT, MAX_TAGS, MAX_CELLS, MAX_WITHIN = 300, 50, 500, 3
ENTRY = re.compile(
    r"^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+(?:custom_kernel|ModelNew)\b|^(?:custom_kernel|ModelNew)\s*[:=]", re.M
)
_FIRST = re.compile(r"^(?:import |from [\w.]+ import |[rR]?\"\"\"|@\w|def |class |#!|[A-Z_]+ ?= ?)", re.M)
_LAST = re.compile(r"^\W{0,4}(?:REPORT|CRITIQUE)\W", re.M)
_TAG = re.compile(r"<([A-Za-z_][\w.:-]{0,40})(?:[= ][^<>\n]{0,200})?>")
_COMMENT = re.compile(r"(?:#|//)(.*)")
_PARTS = re.compile(r"\.\.\.|…|\b(?:rest|remainder|remaining|everything else|other (?:code|functions?|parts?))\b", re.I)
_SAME = re.compile(r"unchanged|as (?:before|above|is)\b|same\b|\bstays?\b|omitted|existing|identical|\bhere\b", re.I)
"""In one comment the two say that it stands for code."""


def in_blocks(blocks: Sequence[FencedBlock]) -> list[str]:
    """Return the files in blocks of code; if there is none, those in blocks of other languages."""
    named = [_file(b.text) for b in blocks if b.language in CODE]
    others = [_file(b.text) for b in blocks if b.language not in (*CODE, *OTHER)]
    return [t for t in named if ENTRY.search(t)] or [t for t in others if ENTRY.search(t)]


def elsewhere(reply: ParsedReply) -> list[str]:
    """Return the files that stand in no block: as a text of JSON, in tags, or as the reply itself."""
    for found in (_in_json(reply), _in_tags(reply.text), _bare(reply)):
        if files := [text for text in found if ENTRY.search(text)]:
            return files
    return []


def require_complete(source: str, base: str) -> None:
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


def _file(text: str) -> str:
    """Return a block's text as a file: not indented as a whole, its line ends not written as `\\n`."""
    line = text.strip()
    if "\n" not in line and "\\n" in line:
        try:
            text = json.loads(line if line.startswith('"') else f'"{line}"', strict=False)
        except ValueError:
            text = line.replace("\\n", "\n")
    return textwrap.dedent(text) if text.lstrip("\n").startswith((" ", "\t")) else text


def _in_json(reply: ParsedReply) -> list[str]:
    """Return the texts of JSON in a reply: of a record, of the call of a tool, of a notebook."""

    def strings(value: Any, within: int = 0) -> Iterator[str]:
        if isinstance(value, str) and "\n" in value:
            yield value
        if isinstance(value, str) and value.lstrip().startswith("{") and within < MAX_WITHIN:
            yield from (found for one in embedded(value) for found in strings(one, within + 1))
        elif isinstance(value, dict):
            if isinstance(cells := value.get("cells"), list):
                yield "".join(map(_lines, cells[:MAX_CELLS]))
                return
            yield from (found for one in value.values() for found in strings(one, within))
        elif isinstance(value, list):
            if value and all(isinstance(one, str) for one in value):
                yield "\n".join(one.removesuffix("\n") for one in value) + "\n"
            yield from (found for one in value for found in strings(one, within))

    alone = embedded(reply.text, '"') if reply.text.startswith('"') else ()
    return [text for values in (embedded(reply.text), alone) for value in values for text in strings(value)]


def _lines(cell: Any) -> str:
    """Return the code of a notebook's cell, without a magic command."""
    source = cell.get("source") if isinstance(cell, dict) and cell.get("cell_type") == "code" else ""
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    lines = [line for line in text.split("\n") if not line.startswith(("%", "!"))]
    return "\n".join(lines).removesuffix("\n") + "\n" if text else ""


def _in_tags(text: str) -> list[str]:
    """Return the texts between tags, as of XML."""
    found = list[str]()
    for number, tag in enumerate(_TAG.finditer(text)):
        end = text.find(f"</{tag[1]}>", tag.end())
        if number >= MAX_TAGS:
            break
        if end >= 0:
            inner = text[tag.end() : end].strip().removeprefix("<![CDATA[").removesuffix("]]>").strip("\n")
            found += [_file(inner + "\n")] if not _TAG.match(inner.lstrip()) else []
    return found


def _bare(reply: ParsedReply) -> list[str]:
    """Return the file that a reply without blocks is, from its first line of code to the report."""
    if reply.blocks or not (first := _FIRST.search(reply.text)):
        return []
    text = reply.text[first.start() :]
    last = _LAST.search(text)
    text = (text[: last.start()] if last else text).rstrip() + "\n"
    try:
        KernelSource(text).tree()
    except SourceError:
        return []
    return [text]


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
