"""The response cache: model replies in an SQLite database, found by the digest of the request or by the call's place.

A reply that is cached is never paid for again: a resumed campaign reads its replies here, and others can replay a
campaign without an API key. A campaign's spending is the sum over the replies it paid for.
"""

import json
import math
import re
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import AliasChoices, Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.kernel import digest
from kernel_scientist.scientist.prompts import Message

FILE = "replies.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    id INTEGER PRIMARY KEY, key TEXT, campaign TEXT, place TEXT, call_key TEXT, role TEXT, model TEXT, tokens INTEGER,
    usd REAL, time REAL, failure TEXT, fault TEXT, traced INTEGER DEFAULT 0, record BLOB
);
CREATE INDEX IF NOT EXISTS by_key ON replies (key);
CREATE INDEX IF NOT EXISTS by_place ON replies (campaign, place);
CREATE INDEX IF NOT EXISTS by_trace ON replies (campaign, traced, id);
"""
SELECT = "SELECT id, record, fault FROM replies"


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
    about: tuple[str, ...] = ()
    """Kernels that the call is about: base and reference of a design."""
    time: Finite = 0.0
    failure: str = ""
    """Why the reply is incomplete. An incomplete reply is paid for and never reused."""
    fault: str = ""
    """Why the reply could not be parsed."""


def stable_key(call_key: str) -> str:
    """Return a call key without the kernel's name: after a killed run the experiment may get another name."""
    return re.sub(r"/k\d+-", "/", call_key)


class Spending(NamedTuple):
    """The calls of one role to one model that a campaign paid for."""

    role: str
    model: str
    calls: int
    truncated: int
    """Calls whose stream ended within the reply."""
    unreadable: int
    """Complete replies that could not be parsed."""
    tokens: int
    usd: float


class ResponseCache:
    """Replies in a folder. Thread-safe; several processes may use the folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = threading.Lock()
        _unlink(folder / FILE)
        self._database = sqlite3.connect(folder / FILE, timeout=60, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(SCHEMA)
        self._import_files()

    def get(self, key: str, call_key: str = "") -> Reply | None:
        """Return the complete reply with a cache key; one that could not be parsed only to the call that it was for.

        There it is followed by its correction; another call, as that of the next generation, may fare better.
        """
        where = "WHERE key = ? AND failure = '' AND (fault = '' OR place = ?) ORDER BY fault != '', id LIMIT 1"
        return self._one(where, key, stable_key(call_key))

    def at(self, campaign: str, call_key: str, before: float = math.inf) -> Reply | None:
        """Return a campaign's reply for a call key, whatever the prompt was (timings differ from run to run).

        `before`: only replies older than this time, in seconds since the epoch.
        """
        where = "WHERE campaign = ? AND place = ? AND failure = '' AND time < ? ORDER BY time DESC LIMIT 1"
        return self._one(where, campaign, stable_key(call_key), before)

    def add(self, reply: Reply) -> None:
        """Store a reply; it survives a kill from then on."""
        self._insert(reply.model_copy(update={"time": time.time()}))

    def mark_unreadable(self, reply: Reply, fault: str) -> None:
        """Record why a reply could not be parsed."""
        self._rows("UPDATE replies SET fault = ? WHERE key = ? AND failure = ''", fault, reply.request.key)

    def paid_by(self, campaign: str) -> list[Reply]:
        """Return every reply that a campaign paid for, incomplete ones included, ordered by time."""
        return [_reply(row) for row in self._rows(f"{SELECT} WHERE campaign = ? ORDER BY time", campaign)]

    def spending(self, campaign: str) -> list[Spending]:
        """Return what a campaign paid for, per role and model."""
        rows = self._rows(
            "SELECT role, model, count(*), sum(failure != ''), sum(failure = '' AND fault != ''), sum(tokens), sum(usd)"
            " FROM replies WHERE campaign = ? GROUP BY role, model ORDER BY role, model",
            campaign,
        )
        return [Spending(*row) for row in rows]

    def untraced(self, campaign: str, most: int) -> list[tuple[int, Reply]]:
        """Return at most `most` replies that `mark_traced` was not called for, oldest first, each with its number."""
        where = "WHERE campaign = ? AND traced = 0 ORDER BY id LIMIT ?"
        return [(row[0], _reply(row)) for row in self._rows(f"{SELECT} {where}", campaign, most)]

    def mark_traced(self, numbers: Iterable[int]) -> None:
        """Record that these replies are MLflow traces."""
        with self._lock:
            self._database.executemany("UPDATE replies SET traced = 1 WHERE id = ?", [(n,) for n in numbers])

    def _insert(self, reply: Reply) -> None:
        tokens = reply.input_tokens + reply.output_tokens
        row = (reply.request.key, reply.campaign, stable_key(reply.call_key), reply.call_key, reply.role)
        row += (reply.request.model, tokens, reply.usd, reply.time, reply.failure, reply.fault)
        record = zlib.compress(reply.model_dump_json().encode(), 1)
        self._rows(
            "INSERT INTO replies (key, campaign, place, call_key, role, model, tokens, usd, time, failure, fault, "
            "record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *row,
            record,
        )

    def _one(self, where: str, *values: object) -> Reply | None:
        row = next(iter(self._rows(f"{SELECT} {where}", *values)), None)
        return _reply(row) if row else None

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def _import_files(self) -> None:
        """Move the replies of an older version, one file each, into the database. A damaged file stays where it is."""
        for file in sorted(self.folder.glob("??/*.json")):
            try:
                reply = Reply.model_validate_json(file.read_text())
            except (OSError, ValueError):
                continue
            self._insert(reply)
            file.unlink(missing_ok=True)


def is_linked(file: Path) -> bool:
    """Whether a file is a link to DVC's cache: a copy takes its place before it is written to."""
    return file.exists() and (file.is_symlink() or file.stat().st_nlink > 1)


def _unlink(file: Path) -> None:
    """Replace a file that is linked to DVC's cache by a copy: the cache must not change."""
    if is_linked(file):
        copy = file.with_suffix(".copy")
        copy.write_bytes(file.read_bytes())
        copy.replace(file)


def _reply(row: Any) -> Reply:
    return Reply.model_validate_json(zlib.decompress(row[1])).model_copy(update={"fault": row[2]})
