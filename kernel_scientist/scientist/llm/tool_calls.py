"""Calls of tools as text: the form in which a conversation is kept, cached, replayed and shown.

A call is a fenced block whose first line reads ```` ```tool NAME ````, with its arguments as a JSON object. A model
without function calling writes it so; calls of the others are put into this form, and back (`endpoint`).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from kernel_scientist.records.base import Record
from kernel_scientist.scientist.llm.parsing import FencedBlock, ParsedReply, ReplyError, split
from kernel_scientist.scientist.prompts import Message

BLOCKS = ("tool", "tool_call", "tool_code")
MAX_NAME = 64
RESULT = "tool"
"""Role of a message with the result of a call."""
HOW_TO_CALL = """## How to call a tool

Write a block as below, one for each call, and end your reply with them. The word after `tool` is the name, the text
within are the arguments, a JSON object; `{}` if there are none, as for a kernel in the same reply:

```tool check
{}
```

All calls of a reply are about its one kernel, unless they have a `source` of their own. The tools, with the schema of
their arguments:"""
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)
"""What open models write that were trained to call tools, where nothing asks for another form."""


class ToolSpec(Record):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""

    def as_function(self) -> dict[str, Any]:
        """Return it in the form of OpenAI's protocol."""
        return {"type": "function", "function": self.model_dump()}


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it; neither the name nor the arguments need be right."""

    name: str
    arguments: str
    """JSON text."""


def wanted(text: str) -> tuple[list[ToolCall], ParsedReply | None]:
    """Return the calls in a reply, and the reply without them; None if nothing is left."""
    try:
        reply = split(text)
    except ReplyError:
        return [], None
    blocks = [block for block in reply.blocks if block.language in BLOCKS]
    calls = [_of_block(block) for block in blocks] or [_of_record(found) for found in _TAGGED.findall(reply.prose)]
    rest = tuple(block for block in reply.blocks if block.language not in BLOCKS)
    return calls, ParsedReply(rest, reply.prose, reply.text)


def written(call: ToolCall) -> str:
    """Return a call as text."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", call.arguments)), default=0))
    return f"{fence}tool {_name(call.name)}\n{call.arguments.strip()}\n{fence}"


def as_functions(messages: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return a conversation in the form of a protocol with functions."""
    sent, waiting = list[dict[str, Any]](), list[str]()
    for number, message in enumerate(messages):
        calls, reply = wanted(message["content"]) if message["role"] == "assistant" else ([], None)
        if calls:
            waiting = [f"call_{number}_{place}" for place, _ in enumerate(calls)]
            asked = [
                {"id": place, "type": "function", "function": {"name": _name(one.name), "arguments": _record(one)}}
                for place, one in zip(waiting, calls, strict=True)
            ]
            sent.append({"role": "assistant", "content": _words(reply), "tool_calls": asked})
        elif message["role"] == RESULT:
            sent.append({**message, "tool_call_id": waiting.pop(0) if waiting else f"call_{number}"})
        else:
            sent.append({**message})
    return sent


def as_text(messages: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return a conversation for a model without functions: results are messages of the user."""
    sent = list[dict[str, Any]]()
    for message in messages:
        if message["role"] != RESULT:
            sent.append({**message})
        elif sent and sent[-1].get("results"):
            sent[-1]["content"] += f"\n\n{message['content']}"
        else:
            sent.append({"role": "user", "content": message["content"], "results": True})
    return [{name: value for name, value in one.items() if name != "results"} for one in sent]


def result(number: int, call: ToolCall, text: str) -> Message:
    """Return the message with the result of a call, the `number`-th of the conversation."""
    return Message(role=RESULT, content=f"Result {number}, of {_name(call.name)}:\n{text}")


def in_words(messages: tuple[Message, ...], tools: Sequence[ToolSpec]) -> tuple[Message, ...]:
    """Return a conversation whose first message of the user says how tools are called."""
    place = next(number for number, message in enumerate(messages) if message.role == "user")
    listed = "\n".join(f"- `{t.name}` {json.dumps(t.parameters.get('properties', {}))}: {t.description}" for t in tools)
    first = Message(role="user", content=f"{messages[place].content}\n{HOW_TO_CALL}\n\n{listed}\n")
    return (*messages[:place], first, *messages[place + 1 :])


def _words(reply: ParsedReply | None) -> str:
    """Return what a reply says beside its calls."""
    if reply is None:
        return ""
    files = [f"```{block.info}\n{block.text}```" for block in reply.blocks]
    return "\n\n".join(filter(None, [_TAGGED.sub("", reply.prose).strip(), *files]))


def _of_block(block: FencedBlock) -> ToolCall:
    _, _, name = block.info.strip().partition(" ")
    return ToolCall(name.strip()[:MAX_NAME], block.text.strip()) if name.strip() else _of_record(block.text)


def _of_record(text: str) -> ToolCall:
    """Return a call whose name stands within the JSON text."""
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ToolCall("", text)
    if not isinstance(record, dict):
        return ToolCall("", text)
    fields = cast(dict[str, Any], record)
    name, given = fields.get("name", fields.get("tool", "")), fields.get("arguments", fields.get("parameters", {}))
    return ToolCall(str(name)[:MAX_NAME], given if isinstance(given, str) else json.dumps(given))


def _record(call: ToolCall) -> str:
    """Return a call's arguments; an empty record for what is none: some providers refuse it."""
    try:
        return call.arguments if isinstance(json.loads(call.arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _name(name: str) -> str:
    return re.sub(r"\W+", "_", name)[:MAX_NAME] or "unnamed"
