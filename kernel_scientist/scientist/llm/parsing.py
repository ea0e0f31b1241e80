"""What a model answered, as data: reasoning stripped, fenced blocks found, metadata read, code taken.

A reply is untrusted text: it may be empty, truncated, a refusal, ten megabytes, or hold instructions. Every reply ends
as what was asked for or as a ReplyError with one sentence that can be sent back to the model. Nothing here recurses or
backtracks without bound.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from kernel_scientist.records.kernel import Ask

MOST_CHARACTERS = 1 << 20
MOST_METADATA = 100_000
"""Characters of JSON or YAML that are read: YAML's reader takes seconds for more."""
LISTED = 3
"""Faults that are named in one error."""

Model = TypeVar("Model", bound=BaseModel)


class ReplyError(Exception):
    """A reply is not what was asked for. The message can be sent back to the model."""

    asks: tuple[Ask, ...] = ()
    """What was asked in vain, once there are no more corrections."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands after the opening fence, and the text between the fences."""

    info: str
    text: str
    closed: bool = True
    """False: the reply ended within it."""

    @property
    def language(self) -> str:
        """The first word after the fence, in small letters."""
        return (self.info.split() or [""])[0].lower()


@dataclass(frozen=True)
class Answer:
    """A reply without reasoning: its blocks, and the prose around them."""

    blocks: tuple[Block, ...]
    prose: str
    text: str


def read(reply: str) -> Answer:
    """Split a reply into prose and fenced blocks. Raises ReplyError when it is empty or too long."""
    if len(reply) > MOST_CHARACTERS:
        raise ReplyError(f"the reply has {len(reply)} characters; at most {MOST_CHARACTERS} are read")
    text = without_reasoning(reply).strip()
    if not text:
        raise ReplyError("the reply is empty")
    blocks: list[Block] = []
    prose: list[str] = []
    fence, info, lines = "", "", list[str]()
    for line in text.splitlines():
        mark = re.match(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*(.*)$", line)
        if not fence and mark and "`" not in mark[2]:
            fence, info, lines = mark[1], mark[2].strip(), []
        elif fence and mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            blocks.append(Block(info, "\n".join(lines) + "\n" if lines else ""))
            fence = ""
        else:
            (lines if fence else prose).append(line)
    if fence:
        blocks.append(Block(info, "\n".join(lines) + "\n" if lines else "", closed=False))
    return Answer(tuple(blocks), "\n".join(prose).strip(), text)


def without_reasoning(reply: str) -> str:
    """Drop what a reasoning model thought aloud, closed or not: `<think> ... </think>`, or all before a lone end."""
    for name in ("think", "thinking", "reasoning"):
        start, end = f"<{name}>", f"</{name}>"
        while (begin := reply.find(start)) >= 0:
            stop = reply.find(end, begin)
            reply = reply[:begin] + (reply[stop + len(end) :] if stop >= 0 else "")
        reply = reply.rpartition(end)[2]
    return reply


def metadata(answer: Answer, kind: type[Model]) -> Model:
    """Return the record that a reply holds as JSON or YAML: bare, fenced, or in the midst of prose.

    Raises ReplyError naming the fields that are wrong.
    """
    fault: ReplyError | None = None
    for text in _candidates(answer):
        try:
            return kind.model_validate(_load(text))
        except ReplyError as error:
            fault = fault or error
        except ValidationError as error:
            fault = ReplyError(_faults(error))
            break  # it is the record that was meant; a later block is not
    raise fault or ReplyError("the reply holds neither JSON nor YAML")


def _candidates(answer: Answer) -> list[str]:
    named = [b.text for b in answer.blocks if b.language in ("json", "yaml", "yml")]
    bare = [b.text for b in answer.blocks if b.language in ("", "text")]
    begin, end = answer.text.find("{"), answer.text.rfind("}")
    inner = [answer.text[begin : end + 1]] if 0 <= begin < end else []
    return [*named, *([] if answer.blocks else [answer.text]), *inner, *bare]


class _Loader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them make gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _load(text: str) -> Any:
    if len(text) > MOST_METADATA:
        raise ReplyError(f"{len(text)} characters of metadata; at most {MOST_METADATA} are read")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        as_json = error
    try:
        found = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        raise ReplyError(f"neither JSON ({as_json}) nor YAML ({' '.join(str(error).split())[:200]})") from error
    if not isinstance(found, dict):
        raise ReplyError(f"the metadata is not a mapping but {type(found).__name__}")
    return found


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    words = [f"{'.'.join(map(str, f['loc'])) or 'the reply'}: {f['msg']}" for f in faults[:LISTED]]
    more = f"; and {len(faults) - LISTED} more" if len(faults) > LISTED else ""
    return f"the reply does not fit: {'; '.join(words)}{more}"
