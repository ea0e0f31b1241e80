"""The store of replies: each under the digest of what was asked (model, parameters, rendered prompt, sample number).

What was answered once is never paid again: a campaign that was killed reads its replies here and goes on, and a
colleague replays it without a key. What a campaign has spent is the sum of what it paid for here.
"""

import json
import os
import re
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import digest


class Message(Record):
    """One message of a conversation."""

    role: str
    content: str


class Question(Record):
    """What is asked of a model; its digest is the reply's key."""

    model: str
    parameters: dict[str, Any]
    """Temperature, most tokens, schema: what the reply depends on besides the messages."""
    messages: tuple[Message, ...]
    sample: int = 0
    """The number of the draw, where the same thing is asked several times."""

    @property
    def key(self) -> str:
        """The digest."""
        return digest(json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False))


class Reply(Record):
    """What was answered, by whom it was paid, and what it came to."""

    question: Question
    text: str
    finish: str = ""
    """Why the model stopped: stop, length, content_filter ..."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Finite = 0.0
    seconds: Finite = 0.0
    role: str
    place: str
    """Where in the campaign: `write/k00012/0`."""
    campaign: str
    time: Finite = 0.0
    failure: str = ""
    """Why this is no answer, though something of it came and is counted as paid."""
    fault: str = ""
    """Why it could not be read."""


def spot(place: str) -> str:
    """Return a place without the kernel's name, which the same commission need not have again after a kill."""
    return re.sub(r"/k\d+-", "/", place)


class Archive:
    """Replies in a folder. Thread-safe; other processes may write to it at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._places: dict[tuple[str, str], str] | None = None
        self._paid: dict[str, list[Reply]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, question: Question) -> Reply | None:
        """Return the reply to exactly this question."""
        return self.get(question.key)

    def get(self, key: str) -> Reply | None:
        """Return the reply under a key."""
        return self._read(self._path(key))

    def at(self, campaign: str, place: str) -> Reply | None:
        """Return what a campaign was answered at a place, whatever the prompt was (timings differ from run to run)."""
        with self._lock:
            if self._places is None:
                found = sorted(self._all(), key=lambda r: r.time)
                self._places = {(r.campaign, spot(r.place)): r.question.key for r in found if not r.failure}
            key = self._places.get((campaign, spot(place)))
        return self._read(self._path(key)) if key else None

    def keep(self, reply: Reply) -> None:
        """Write a reply; it is there whole or not at all."""
        path = self._path(reply.question.key if not reply.failure else f"{uuid.uuid4().hex}-failed")
        reply = reply.model_copy(update={"time": time.time()})
        self._write(path, reply)
        with self._lock:
            if (paid := self._paid.get(reply.campaign)) is not None:
                paid.append(reply)

    def refuse(self, reply: Reply, fault: str) -> None:
        """Note that a reply could not be read."""
        path = self._path(reply.question.key)
        known = self._read(path)
        if known is None or known.fault == fault:
            return
        refused = known.model_copy(update={"fault": fault})
        self._write(path, refused)
        with self._lock:
            if (paid := self._paid.get(known.campaign)) is not None:
                paid[:] = [refused if r.question.key == known.question.key and not r.failure else r for r in paid]

    def paid_by(self, campaign: str) -> list[Reply]:
        """Return every reply that a campaign paid for, failed ones included, in the order of their time."""
        with self._lock:
            if campaign not in self._paid:  # one process runs a campaign: from here on it knows what it adds
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
            return None  # written by another version, or damaged: it is asked again
