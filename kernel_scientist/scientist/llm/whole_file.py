"""A reply's complete kernel files: in blocks of code, as a text of JSON, in tags, or without any mark."""

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.compilers.source import KernelSource, SourceError
from kernel_scientist.scientist.llm.parsing import FencedBlock, ParsedReply, split
from kernel_scientist.scientist.llm.structured import embedded, in_yaml

CODE = ("python", "py", "python3", "triton", "")
OTHER = ("json", "yaml", "yml", "diff", "patch", "bash", "sh", "shell", "console", "markdown", "md")
"""Languages of blocks that hold no file, even if one stands in them."""
MAX_TAGS, MAX_CELLS, MAX_WITHIN, LEAST_NUMBERED = 50, 500, 3, 3
ENTRY = re.compile(
    r"^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+(?:custom_kernel|ModelNew)\b|^(?:custom_kernel|ModelNew)\s*[:=]", re.M
)
_FIRST = re.compile(r"^(?:import |from [\w.]+ import |[rR]?\"\"\"|@\w|def |class |#!|[A-Z_]+ ?= ?)", re.M)
_LAST = re.compile(r"^\W{0,4}(?:REPORT|CRITIQUE)\W", re.M)
_TAG = re.compile(r"<([A-Za-z_][\w.:-]{0,40})(?:[= ][^<>\n]{0,200})?>")
_HERE_DOCUMENT = re.compile(r"<<-?[ ]*(['\"]?)(\w{1,40})\1[^\n]*\n(.*?)^[ \t]*\2[ \t]*$", re.M | re.S)
_FENCED = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.M)
_LITERAL = re.compile(r"^\s*(?:- )?\w{1,40}: *[|>][-+]?[ \t]*$", re.M)
_NUMBERED = re.compile(r"[ \t]*(\d{1,5})(?:[ ]?[|:│][ ]?|\t|$)")
_NO_BREAK = re.compile(r"^[ \t\u00a0]*\u00a0[ \t\u00a0]*", re.M)


def in_blocks(blocks: Sequence[FencedBlock]) -> list[str]:
    """Return the files in blocks of code; if there is none, those in blocks of other languages."""
    named = [_file(b.text) for b in blocks if b.language in CODE]
    others = [_file(b.text) for b in blocks if b.language not in (*CODE, *OTHER)]
    return [t for t in named if ENTRY.search(t)] or [t for t in others if ENTRY.search(t)]


def elsewhere(reply: ParsedReply) -> list[str]:
    """Return the files in no block of code: texts of JSON or of a shell, in tags, or the reply itself."""
    shell = [found[3] for found in _HERE_DOCUMENT.finditer(reply.text)]
    for found in (texts(reply), shell, _in_tags(reply.text), _bare(reply)):
        if files := [file for text in found if ENTRY.search(text) for file in _within(text)]:
            return files
    return []


def _within(text: str) -> list[str]:
    """Return the files in a text's own blocks, or else the text: a record may hold a page of Markdown."""
    return (in_blocks(split(text).blocks) if _FENCED.search(text) else []) or [text]


def _file(text: str) -> str:
    """Return a block's text as a file: not indented as a whole, its line ends not written as `\\n`, without what a page
    or a notebook adds: numbers of lines, spaces that do not break, a command for the cell."""
    line = text.strip()
    if "\n" not in line and "\\n" in line:
        try:
            text = json.loads(line if line.startswith('"') else f'"{line}"', strict=False)
        except ValueError:
            text = line.replace("\\n", "\n")
    text = _NO_BREAK.sub(lambda indent: indent[0].replace("\u00a0", " "), _without_numbers(text))
    if text.startswith("%%"):
        text = text.partition("\n")[2]
    return textwrap.dedent(text) if text.lstrip("\n").startswith((" ", "\t")) else text


def _without_numbers(text: str) -> str:
    """Return a text without the numbers of its lines, if every line has its own."""
    lines = text.removesuffix("\n").split("\n")
    marks = [mark for line in lines if (mark := _NUMBERED.match(line))]
    first = int(marks[0][1]) if marks else 0
    if len(lines) < LEAST_NUMBERED or [int(mark[1]) for mark in marks] != list(range(first, first + len(lines))):
        return text
    return "".join(f"{line[mark.end() :]}\n" for line, mark in zip(lines, marks, strict=True))


def texts(reply: ParsedReply) -> list[str]:
    """Return the texts of JSON or YAML in a reply: of a record, of the call of a tool, of a notebook."""

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
            if value and all(isinstance(one, str) and "\n" not in one[:-1] for one in value):
                yield "\n".join(one.removesuffix("\n") for one in value) + "\n"
            yield from (found for one in value for found in strings(one, within))

    alone = embedded(reply.text, '"') if reply.text.startswith('"') else ()
    pages = [b.text for b in reply.blocks if b.language in ("yaml", "yml")] or ([] if reply.blocks else [reply.text])
    literal = (value for page in pages if _LITERAL.search(page) for value in in_yaml(page))
    return [text for values in (embedded(reply.text), alone, literal) for value in values for text in strings(value)]


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
