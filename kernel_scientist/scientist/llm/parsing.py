"""Splits a model's reply into prose and fenced blocks and reads JSON or YAML from it; reasoning is dropped.

A reply is untrusted text: it may be empty, truncated, a refusal or ten megabytes long, or contain instructions. Every
reply becomes a record or a ReplyError with one sentence that can be sent back to the model. Recursion and backtracking
are bounded everywhere.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from kernel_scientist.records.kernel import LlmCall
from kernel_scientist.records.text import valid_tree

MAX_CHARACTERS = 1 << 20
MAX_RECORD_CHARACTERS = 100_000
"""Characters of JSON or YAML: the YAML parser takes seconds for more."""
MAX_OBJECTS = 100
"""Braces in prose at which JSON is looked for."""
MAX_LISTED = 3
"""Validation errors named in one message."""

Model = TypeVar("Model", bound=BaseModel)


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
        return (self.info.split() or [""])[0].lower()


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
    text = without_reasoning(reply.replace("\r\n", "\n")).strip()
    if not text:
        raise ReplyError("the reply is only reasoning, without an answer" if reply.strip() else "the reply is empty")
    blocks, prose = _blocks(text, aware=True)
    if blocks and not blocks[-1].closed:
        blocks, prose = _blocks(text, aware=False)
    return ParsedReply(tuple(_flat(blocks)), "\n".join(prose).strip(), text)


def _blocks(text: str, aware: bool) -> tuple[list[FencedBlock], list[str]]:
    """Return the fenced blocks and the lines around them. `aware`: a fence in a string of Python closes no block."""
    blocks, prose = list[FencedBlock](), list[str]()
    fence, margin, info, lines = "", 0, "", list[str]()
    for line in text.split("\n"):
        mark = re.match(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*)$", line)
        if not fence and mark and "`" not in mark[3]:
            margin, fence, info, lines = len(mark[1]), mark[2], mark[3].strip(), []
        elif (
            fence
            and mark
            and mark[2].startswith(fence)
            and not mark[3].strip()
            and len(mark[1]) <= margin + 3
            and not (aware and _in_string(lines))
        ):
            blocks.append(FencedBlock(info, "\n".join(lines) + "\n" if lines else ""))
            fence = ""
        elif fence:  # a fence in a list is indented, and its lines with it
            lines.append(line[min(margin, len(line) - len(line.lstrip(" \t"))) :])
        else:
            prose.append(line)
    if fence:
        blocks.append(FencedBlock(info, "\n".join(lines) + "\n" if lines else "", closed=False))
    return blocks, prose


def _in_string(lines: list[str]) -> bool:
    """Return whether a string in triple quotes is open after some lines of a file."""
    text, open_ = "\n".join(lines), ""
    for mark in re.findall(r'"""|\'\'\'', text):
        open_ = mark if not open_ else "" if mark == open_ else open_
    return bool(open_)


def _flat(blocks: list[FencedBlock]) -> Iterator[FencedBlock]:
    """Yield the blocks; of one that contains fenced blocks itself, as a page of Markdown does, those."""
    for block in blocks:
        inner = _blocks(block.text, aware=True)[0] if block.language in ("", "markdown", "md", "text") else []
        yield from (one for one in inner if one.closed) if any(one.closed for one in inner) else (block,)


def without_reasoning(reply: str) -> str:
    """Return a reply without `<think> ... </think>`, also without its start or its end. A tag in an answer is text."""
    for name in ("think", "thinking", "reasoning"):
        start, end = f"<{name}>", f"</{name}>"
        begin = 0
        while (begin := reply.find(start, begin)) >= 0:
            stop = reply.find(end, begin)
            if _fences(reply[:begin]) % 2 or (stop < 0 and _answers(reply[:begin])):
                begin += len(start)
                continue
            reply = reply[:begin] + (reply[stop + len(end) :] if stop >= 0 else "")
        before, lone, after = reply.rpartition(end)
        if lone and not _fences(before) % 2 and (_answers(after) or not _answers(before)):
            reply = after
    return reply


def _fences(text: str) -> int:
    return len(re.findall(r"^[ \t]*(?:`{3,}|~{3,})", text, re.M))


def _answers(text: str) -> bool:
    """Return whether a text has what a reply is asked for: a block or a record."""
    return _fences(text) > 0 or "{" in text


def record(reply: ParsedReply, kind: type[Model]) -> Model:
    """Return the record that a reply contains as JSON or YAML: bare, fenced, or surrounded by prose.

    Raises ReplyError naming the wrong fields.
    """
    fault: ReplyError | None = None
    for text in _candidates(reply):
        try:
            return kind.model_validate(_load(text))
        except ReplyError as error:
            fault = fault or error
        except ValidationError as error:
            fault = ReplyError(_faults(error))
            break  # this block is the intended record
    for value in embedded(reply.text):
        with contextlib.suppress(ValidationError):
            return kind.model_validate(value)
    raise fault or ReplyError("the reply contains neither JSON nor YAML")


def embedded(text: str) -> Iterator[Any]:
    """Yield the objects that stand as JSON anywhere in a text, the outer ones only."""
    decoder, place, tries = json.JSONDecoder(), 0, 0
    while (place := text.find("{", place)) >= 0 and tries < MAX_OBJECTS:
        tries += 1
        try:
            value, place = decoder.raw_decode(text, place)
            value = valid_tree(value)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield value


def _candidates(reply: ParsedReply) -> list[str]:
    named = [b.text for b in reply.blocks if b.language in ("json", "yaml", "yml")]
    bare = [b.text for b in reply.blocks if b.language in ("", "text")]
    begin, end = reply.text.find("{"), reply.text.rfind("}")
    inner = [reply.text[begin : end + 1]] if 0 <= begin < end else []
    return [*named, *([] if reply.blocks else [reply.text]), *inner, *bare]


class _Loader(yaml.SafeLoader):
    """YAML without aliases: a few lines of aliases can expand to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


def _load(text: str) -> Any:
    if len(text) > MAX_RECORD_CHARACTERS:
        raise ReplyError(f"{len(text)} characters of JSON or YAML; at most {MAX_RECORD_CHARACTERS} are read")
    try:
        return valid_tree(json.loads(text))
    except (ValueError, RecursionError) as error:
        as_json = error
    try:
        value = valid_tree(yaml.load(text, _Loader))
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        raise ReplyError(f"neither JSON ({as_json}) nor YAML ({' '.join(str(error).split())[:200]})") from error
    if not isinstance(value, dict):
        raise ReplyError(f"the record is not a mapping but {type(value).__name__}")
    return value


def _faults(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False)
    listed = [f"{'.'.join(map(str, e['loc'])) or 'the reply'}: {e['msg']}" for e in errors[:MAX_LISTED]]
    more = f"; and {len(errors) - MAX_LISTED} more" if len(errors) > MAX_LISTED else ""
    return f"the reply has the wrong fields: {'; '.join(listed)}{more}"
