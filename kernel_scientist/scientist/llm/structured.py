"""The record in a reply: JSON or YAML, bare, fenced, or surrounded by prose; lenient about how it is written."""

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from kernel_scientist.compilers.source import C_COMMENT
from kernel_scientist.records.text import valid
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError

MAX_RECORD_CHARACTERS = 100_000
"""Characters of JSON or YAML: the YAML parser takes seconds for more."""
MAX_OBJECTS = 100
"""Braces in prose at which JSON is looked for."""
MAX_DEPTH = 20
"""Levels of a record."""
MAX_LISTED = 3
"""Validation errors named in one message."""

Model = TypeVar("Model", bound=BaseModel)


def record(reply: ParsedReply, kind: type[Model]) -> Model:
    """Return the record that a reply contains as JSON or YAML: bare, fenced, or surrounded by prose.

    Raises ReplyError naming the wrong fields.
    """
    fault: ReplyError | None = None
    for text in _candidates(reply):
        try:
            return kind.model_validate(_unwrapped(_load(text), kind))
        except ReplyError as error:
            fault = fault or error
        except ValidationError as error:
            fault = ReplyError(f"the reply has the wrong fields: {faults(error)}")
            break  # this block is the intended record
    for value in embedded(reply.text):
        with contextlib.suppress(ValidationError):
            return kind.model_validate(_unwrapped(value, kind))
    raise fault or ReplyError("the reply contains neither JSON nor YAML")


def embedded(text: str, start: str = "{") -> Iterator[Any]:
    """Yield the values that stand as JSON anywhere in a text and begin with a character, the outer ones only."""
    decoder, place, tries = json.JSONDecoder(strict=False), 0, 0
    likely = re.compile(r'\{(?=\s*["}])' if start == "{" else re.escape(start))
    while (found := likely.search(text, place)) and tries < MAX_OBJECTS:
        tries += 1
        try:
            value, place = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            place = found.end()
        else:
            with contextlib.suppress(ReplyError):
                yield made_valid(value)


def _candidates(reply: ParsedReply) -> list[str]:
    named = [b.text for b in reply.blocks if b.language in ("json", "yaml", "yml", "json5", "jsonc")]
    bare = [b.text for b in reply.blocks if b.language in ("", "text")]
    begin, end = reply.text.find("{"), reply.text.rfind("}")
    inner = [reply.text[begin : end + 1]] if 0 <= begin < end else []
    return [*named, *([] if reply.blocks else [reply.text]), *inner, *bare]


def in_yaml(text: str) -> Iterator[Any]:
    """Yield the value that a text is as YAML, if it is one."""
    with contextlib.suppress(ReplyError):
        yield _load(f"{text}\n")


class _Loader(yaml.SafeLoader):
    """YAML without aliases: a few lines of aliases can expand to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


def _load(text: str) -> Any:
    """Return a text's mapping or list. Raises ReplyError."""
    if len(text) > MAX_RECORD_CHARACTERS:
        raise ReplyError(f"{len(text)} characters of JSON or YAML; at most {MAX_RECORD_CHARACTERS} are read")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        value = _lenient(text, error)
    if not isinstance(value, dict | list):
        raise ReplyError(f"the record is not a mapping but {type(value).__name__}")
    return made_valid(value)


def _lenient(text: str, as_json: Exception) -> Any:
    """Return the value of what is nearly JSON, or YAML: single quotes, a comma too many, comments."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        plain = C_COMMENT.sub(lambda match: match["literal"] or "", text)
        if plain != text:
            return _lenient(plain, as_json)
        raise ReplyError(f"neither JSON ({as_json}) nor YAML ({' '.join(str(error).split())[:200]})") from error


def made_valid(value: Any, depth: int = 0) -> Any:
    """Return a value whose texts can be stored: an escape in JSON may give what no file can hold.

    Raises ReplyError if it is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise ReplyError(f"the record has more than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, list):
        return [made_valid(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {made_valid(name, depth + 1): made_valid(one, depth + 1) for name, one in value.items()}
    return value


def _unwrapped(value: Any, kind: type[BaseModel]) -> Any:
    """Return the record of a list of one, or of a mapping with one name that the record does not have."""
    known = {*kind.model_json_schema()["properties"], *kind.model_fields}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and known & value[0].keys():
        return value[0]
    if isinstance(value, dict) and len(value) == 1 and not known & value.keys():
        inner = next(iter(value.values()))
        return inner if isinstance(inner, dict) else value
    return value


def faults(error: ValidationError) -> str:
    """Return the wrong fields of a record, each with what is wrong."""
    errors = error.errors(include_url=False, include_context=False)
    listed = [f"{'.'.join(map(str, e['loc'])) or 'the reply'}: {e['msg']}" for e in errors[:MAX_LISTED]]
    more = f"; and {len(errors) - MAX_LISTED} more" if len(errors) > MAX_LISTED else ""
    return f"{'; '.join(listed)}{more}"
