"""Splits a model's reply into prose and fenced blocks; reasoning is dropped.

A reply is untrusted text: it may be empty, truncated, a refusal or ten megabytes long, or contain instructions. Every
reply becomes a record or a ReplyError with one sentence that can be sent back to the model. Recursion and backtracking
are bounded everywhere.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_scientist.records.kernel import LlmCall
from kernel_scientist.records.text import valid, with_line_feeds
from kernel_scientist.scientist.llm.reasoning import without_reasoning

MAX_CHARACTERS, MAX_WITHIN = 1 << 20, 3
"""Characters of a reply; blocks around a block."""
MARKS = "\ufeff\u200b\u2060"
"""Invisible characters before a text."""


class ReplyError(Exception):
    """A reply does not have the requested form. The message can be sent back to the model."""

    llm_calls: tuple[LlmCall, ...] = ()
    """The calls made, once there are no more corrections."""


@dataclass(frozen=True)
class FencedBlock:
    """A fenced block: the rest of the opening line, and the text between the fences."""

    info: str
    text: str
    closed: bool = True
    """False: the reply ended within the block."""

    @property
    def language(self) -> str:
        """Return the first word after the fence, in lower case."""
        word = re.match(r"[{.\s]*([\w+#-]*)", self.info)
        return word[1].lower() if word else ""


@dataclass(frozen=True)
class ParsedReply:
    """A reply without its reasoning: blocks, prose around them, whole text."""

    blocks: tuple[FencedBlock, ...]
    prose: str
    text: str


def split(reply: str) -> ParsedReply:
    """Split a reply into prose and fenced blocks. Raises ReplyError if it is empty or too long."""
    if len(reply) > MAX_CHARACTERS:
        raise ReplyError(f"the reply has {len(reply)} characters; at most {MAX_CHARACTERS} are read")
    reply = with_line_feeds(valid(reply)).lstrip(MARKS)
    text = _unescaped(without_reasoning(reply)).strip()
    if not text:
        raise ReplyError("the reply is only reasoning, without an answer" if reply.strip() else "the reply is empty")
    blocks, prose = _blocks(text, aware=True)
    if not blocks and re.search(r"^> ?(?:`{3,}|~{3,})", text, re.M):  # all of it is a quotation
        text = re.sub(r"^> ?", "", text, flags=re.M)
        blocks, prose = _blocks(text, aware=True)
    if blocks and not blocks[-1].closed:
        blocks, prose = _blocks(text, aware=False)
    if blocks and not blocks[-1].closed:
        apart = _blocks(_FENCE_AT_END.sub(r"\1\n\2", text), aware=False, loose=True)
        blocks, prose = apart if apart[0] and apart[0][-1].closed else (blocks, prose)
    return ParsedReply(tuple(_flat(blocks)), "\n".join(prose).strip(), text)


_FENCE = re.compile(r"`{3,}|~{3,}")
_FENCE_AT_END = re.compile(r"^(?![ \t]*(?:`{3}|~{3}))(.*[^\s`~])[ \t]*((?:`{3,}|~{3,})\w{0,20})[ \t]*$", re.M)
"""A fence that stands at the end of a line of text or code."""


def _unescaped(text: str) -> str:
    """Return a text in which `<` and `>` stand, if it was escaped as a whole for a page of HTML."""
    escaped = re.search(r"&(?:lt|gt|#60|#62|#x3[ce]);", text, re.I) and not re.search("[<>]", text)
    return html.unescape(text) if escaped else text


def _blocks(text: str, aware: bool, loose: bool = False) -> tuple[list[FencedBlock], list[str]]:
    """Return the fenced blocks and the lines around them.

    `aware`: a fence in a string of Python closes no block. `loose`: words may follow the fence that closes one.
    """
    blocks, prose = list[FencedBlock](), list[str]()
    fence, margin, info, lines, string = "", 0, "", list[str](), ""
    for line in text.split("\n"):
        mark = re.match(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*)$", line)
        if not fence and mark and "`" not in mark[3]:
            margin, fence, info, lines, string = len(mark[1]), mark[2], mark[3].strip(), [], ""
        elif (
            fence
            and mark
            and mark[2].startswith(fence)
            and (loose or not mark[3].strip())
            and len(mark[1]) <= margin + 3
            and not (aware and string)
        ):
            blocks.append(FencedBlock(info, _joined(lines)))
            prose += [mark[3]] if mark[3].strip() else []
            fence = ""
        elif fence:  # a fence in a list is indented, and its lines with it
            lines.append(line[min(margin, len(line) - len(line.lstrip(" \t"))) :])
            string = _string(string, line)
        else:
            prose.append(line)
    if fence:
        blocks.append(FencedBlock(info, _joined(lines), closed=False))
    return blocks, prose


def _joined(lines: list[str]) -> str:
    return ("\n".join(lines) + "\n").lstrip(MARKS) if lines else ""


def _string(open_: str, line: str) -> str:
    """Return the quotes of the string that is open after a line, if one was open before it."""
    for mark in re.findall(r'"""|\'\'\'', line):
        open_ = mark if not open_ else "" if mark == open_ else open_
    return open_


def _flat(blocks: list[FencedBlock], within: int = MAX_WITHIN) -> Iterator[FencedBlock]:
    """Yield the blocks; of one that contains fenced blocks itself, as a page of Markdown does, those."""
    for block in blocks:
        page = block.language in ("", "markdown", "md", "text", "txt") or _FENCE.match(block.text.lstrip())
        inner = [one for one in _blocks(block.text, aware=True)[0] if one.closed] if page and within else []
        yield from _flat(inner, within - 1) if inner else (block,)
