"""What an endpoint answered: text, reasoning, calls of tools, refusal, tokens; of a stream's chunks or of one record.

Everything in it is untrusted: a field may be missing, null, or of another type than the protocol says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernel_scientist.records.text import valid
from kernel_scientist.scientist.llm.response_cache import LlmRequest
from kernel_scientist.scientist.llm.tool_calls import ToolCall, written

MAX_CHARACTERS = 4 << 20
"""Longer replies are cut off."""
MOST_TOKENS = 100_000_000
"""A larger count is no count of one call's tokens."""
CHARACTERS_PER_TOKEN = 3.5
"""For estimates; rather too low for English text and code, so that estimates are rather too high."""
CUT_OFF, WITHHELD, REFUSAL, TOO_LONG = "length", "content_filter", "refusal", "more than is read"
"""Reasons for the end of a reply. Of others, the server's own word is kept."""
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_length")
_FILTERED = ("content_filter", "content_filtered", "guardrail_intervened", "sensitive")
_BLOCKED = ("safety", "recitation", "blocklist", "prohibited_content", "spii")
_FAILED = ("error", "network_error", "insufficient_system_resource", "abort")


@dataclass(frozen=True)
class ModelOutput:
    """A complete reply."""

    text: str
    finish: str
    input_tokens: int
    output_tokens: int


@dataclass
class _StreamedCall:
    """What has come of a call so far."""

    place: str
    number: str
    name: str
    arguments: str


class Answer:
    """The first choice of an answer; further choices are further replies."""

    def __init__(self, offered: bool = False) -> None:
        """`offered`: whether the request offered tools. Else what was written as a call's arguments is the reply."""
        self.offered = offered
        self.finish = ""
        """Why the reply ended, in the server's word; empty if it did not say."""
        self.size = 0
        """Characters so far."""
        self._parts: dict[str, list[str]] = {"content": [], "reasoning": [], "arguments": [], "refusal": []}
        self._calls: list[_StreamedCall] = []
        self._usage: object = None

    def add(self, chunk: object) -> None:
        """Add a chunk of a stream, or a whole record."""
        self._usage = _get(chunk, "usage") or self._usage
        for choice in _items(_get(chunk, "choices")):
            if _get(choice, "index"):
                continue
            piece = _get(choice, "delta") or _get(choice, "message")
            content = _get(piece, "content")
            self._add("content", _text(content if piece else _get(choice, "text")))
            self._add("reasoning", _text(_get(piece, "reasoning_content") or _get(piece, "reasoning")))
            self._add("refusal", _text(_get(piece, "refusal")))
            for place, call in enumerate(_items(_get(piece, "tool_calls"))):
                self._call(str(_get(call, "index") or place), _text(_get(call, "id")), _get(call, "function"))
            self._call("", "", _get(piece, "function_call"))
            self.finish = _text(_get(choice, "finish_reason"))[:40] or self.finish

    @property
    def text(self) -> str:
        """The reply and the arguments of calls beside it; without them a refusal, or the reasoning."""
        content, reasoning, arguments, refusal = (valid("".join(parts)) for parts in self._parts.values())
        if self.offered:
            arguments = "\n\n".join(written(ToolCall(valid(one.name), valid(one.arguments))) for one in self._calls)
            content += "\n" * bool(content and arguments)
        if said := "\n".join(part for part in (content, arguments) if part.strip()):
            return said
        return refusal or (f"<think>{reasoning}</think>" if reasoning.strip() else "")

    def output(self, request: LlmRequest) -> ModelOutput:
        """Return the reply to a request. Tokens that the server does not count, or not credibly, are estimated."""
        output = estimated_tokens("".join(self._parts["reasoning"]) + self.text)
        return ModelOutput(
            self.text,
            self._reason(),
            _count(_get(self._usage, "prompt_tokens")) or input_tokens(request),
            _count(_get(self._usage, "completion_tokens")) or output,
        )

    @property
    def failed(self) -> bool:
        """Whether the server says that it could not complete the reply."""
        return self.finish.lower() in _FAILED

    def _reason(self) -> str:
        word = self.finish.lower()
        if self.size > MAX_CHARACTERS:
            return TOO_LONG
        if self._parts["refusal"] and not self._parts["content"] and not self._parts["arguments"]:
            return REFUSAL
        return CUT_OFF if word in _CUT_OFF else WITHHELD if word in (*_FILTERED, *_BLOCKED) else valid(self.finish)

    def _call(self, place: str, number: str, function: object) -> None:
        """Add a piece of a call. Some servers give every call the same place, and another `number`."""
        name, arguments = _text(_get(function, "name")), _text(_get(function, "arguments"))
        self._add("arguments", arguments)
        known = next((one for one in reversed(self._calls) if one.place == place), None)
        if known is None or (name and known.name and number not in ("", known.number)):
            if name or arguments:
                self._calls.append(_StreamedCall(place, number, name, arguments))
        else:
            known.name += name if name != known.name else ""  # some repeat it in each piece
            known.arguments += arguments

    def _add(self, kind: str, piece: str) -> None:
        if piece:
            self._parts[kind].append(piece)
            self.size += len(piece)


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text, rather too many."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 8


def input_tokens(request: LlmRequest) -> int:
    """Return the estimated number of tokens of a request's messages and tools."""
    tools = request.parameters.get("tools")
    return sum(estimated_tokens(m.content) for m in request.messages) + (estimated_tokens(str(tools)) if tools else 0)


def _get(thing: object, name: str) -> object:
    """Return a field of a mapping or an attribute of a record; None if there is none."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _items(value: object) -> Iterator[object]:
    yield from value if isinstance(value, list | tuple) else ()


def _text(value: object) -> str:
    """Return a text, also one that came as a list of parts."""
    if isinstance(value, list | tuple):
        return "".join(_text(_get(part, "text") if not isinstance(part, str) else part) for part in value)
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    """Return a number of tokens; 0 for what is none."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 12:
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MOST_TOKENS:
        return 0
    return int(value)
