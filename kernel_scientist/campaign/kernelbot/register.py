"""What was submitted: a row is written before a submission is sent, so that none is sent twice or forgotten."""

import sqlite3
import threading
import time
from pathlib import Path
from typing import NamedTuple

from kernel_scientist.campaign.kernelbot.messages import Submission

SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    key TEXT PRIMARY KEY, board TEXT, gpu TEXT, mode TEXT, file_name TEXT, begun REAL, id INTEGER, answer TEXT
)
"""


class Entry(NamedTuple):
    """A submission: sent perhaps (no id yet), accepted (an id), ended (an answer)."""

    begun: float
    """Seconds since the epoch."""
    id: int | None
    answer: Submission | None


class Register:
    """The submissions of a laboratory in a SQLite database. What is written survives a kill."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(file, timeout=60, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(SCHEMA)

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key."""
        with self._lock:
            row = self._database.execute("SELECT begun, id, answer FROM submissions WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return Entry(row[0], row[1], Submission.model_validate_json(row[2]) if row[2] else None)

    def begin(self, key: str, board: str, gpu: str, mode: str, file_name: str) -> Entry:
        """Write that a source is about to be sent."""
        now = time.time()
        self._write(
            "INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)", key, board, gpu, mode, file_name, now
        )
        return Entry(now, None, None)

    def accepted(self, key: str, number: int) -> None:
        """Write the id that the leaderboard gave."""
        self._write("UPDATE submissions SET id = ? WHERE key = ?", number, key)

    def ended(self, key: str, answer: Submission) -> None:
        """Write the final answer."""
        self._write("UPDATE submissions SET answer = ? WHERE key = ?", answer.model_dump_json(), key)

    def refused(self, key: str) -> None:
        """Remove an entry whose source the leaderboard did not accept."""
        self._write("DELETE FROM submissions WHERE key = ? AND id IS NULL", key)

    def _write(self, statement: str, *values: object) -> None:
        with self._lock:
            self._database.execute(statement, values)
