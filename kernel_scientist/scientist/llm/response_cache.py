"""The response cache: model replies in files, each under the digest of its request.

A reply that is cached is never paid for again: a resumed campaign reads its replies here, and others can replay a
campaign without an API key. A campaign's spending is the sum over the replies it paid for.
"""

import json
import os
import re
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import digest


class Message(Record):
    """One message of a conversation."""

    role: str
    content: str


class LlmRequest(Record):
    """A request to a model. The digest of its JSON is the cache key, so its fields must keep their names."""

    model: str
    parameters: dict[str, Any]
    """What the reply depends on besides the messages: temperature, token limit, schema."""
    messages: tuple[Message, ...]
    sample: int = 0
    """Number of the sample, if the same messages are sent several times."""

    @property
    def key(self) -> str:
        """Return the cache key."""
        return digest(json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False))


class Reply(Record):
    """A model's reply, its cost, and the campaign that paid for it."""

    request: LlmRequest = Field(validation_alias=AliasChoices("request", "question"))  # older caches: `question`
    text: str
    finish: str = ""
    """Why the model stopped: stop, length, content_filter ..."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Finite = 0.0
    seconds: Finite = 0.0
    role: str
    call_key: str = Field(validation_alias=AliasChoices("call_key", "place"))  # older caches: `place`
    """The request's place in the campaign, such as `write/k00012-1a2b3c4d/0`."""
    campaign: str
    time: Finite = 0.0
    failure: str = ""
    """Why the reply is incomplete. An incomplete reply is paid for and never reused."""
    fault: str = ""
    """Why the reply could not be parsed."""


def stable_key(call_key: str) -> str:
    """Return a call key without the kernel's name: after a killed run the experiment may get another name."""
    return re.sub(r"/k\d+-", "/", call_key)


class ResponseCache:
    """Replies in a folder. Thread-safe; several processes may write to the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._by_call: dict[tuple[str, str], str] | None = None
        self._paid: dict[str, list[Reply]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Reply | None:
        """Return the reply with a cache key."""
        return self._read(self._path(key))

    def at(self, campaign: str, call_key: str) -> Reply | None:
        """Return a campaign's reply for a call key, whatever the prompt was (timings differ from run to run)."""
        with self._lock:
            if self._by_call is None:
                replies = sorted(self._all(), key=lambda r: r.time)
                self._by_call = {(r.campaign, stable_key(r.call_key)): r.request.key for r in replies if not r.failure}
            key = self._by_call.get((campaign, stable_key(call_key)))
        return self.get(key) if key else None

    def add(self, reply: Reply) -> None:
        """Write a reply atomically."""
        reply = reply.model_copy(update={"time": time.time()})
        self._write(self._path(reply.request.key if not reply.failure else f"{uuid.uuid4().hex}-failed"), reply)
        with self._lock:
            if (paid := self._paid.get(reply.campaign)) is not None:
                paid.append(reply)

    def mark_unreadable(self, reply: Reply, fault: str) -> None:
        """Record why a reply could not be parsed."""
        key = reply.request.key
        cached = self.get(key)
        if cached is None or cached.fault == fault:
            return
        marked = cached.model_copy(update={"fault": fault})
        self._write(self._path(key), marked)
        with self._lock:
            if (paid := self._paid.get(cached.campaign)) is not None:
                paid[:] = [marked if r.request.key == key and not r.failure else r for r in paid]

    def paid_by(self, campaign: str) -> list[Reply]:
        """Return every reply that a campaign paid for, incomplete ones included, ordered by time."""
        with self._lock:
            if campaign not in self._paid:  # only this process runs the campaign, so later replies pass through `add`
                self._paid[campaign] = sorted((r for r in self._all() if r.campaign == campaign), key=lambda r: r.time)
            return list(self._paid[campaign])

    def _all(self) -> list[Reply]:
        return [r for path in sorted(self.folder.glob("??/*.json")) if (r := self._read(path))]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _write(self, path: Path, reply: Reply) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        part.write_text(reply.model_dump_json(indent=1))
        part.replace(path)

    def _read(self, path: Path) -> Reply | None:
        try:
            return Reply.model_validate_json(path.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            return None  # damaged, or written by another version: the model is called again
