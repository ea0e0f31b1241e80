"""Sends sources to the leaderboard one after the other, each once, and waits for the results.

A row is written before a submission is sent, so that none is sent twice or forgotten.
"""

import logging
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernel_scientist.campaign.kernelbot import results
from kernel_scientist.campaign.kernelbot.api import (
    Api,
    BusyError,
    Event,
    RefusedError,
    Submission,
    UnclearError,
    error_of,
)
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError
from kernel_scientist.records.kernel import Verdict, digest
from kernel_scientist.records.param_sections import Kernelbot
from kernel_scientist.sandbox import device_queue
from kernel_scientist.sandbox.failure import KernelFailure

progress = logging.getLogger("kernel_scientist.progress")
MARK = 16
"""Characters of a submission's key in its file's name, by which it is found in the user's list."""
MOST_DELAY_S = 60.0
"""Longest delay before a request is repeated after a fault of the server; each is twice the one before."""
_SET_UP = re.compile(r"deadline|gpu|mode|leaderboard|board|closed|auth|header|user|HTTP 40[1345]", re.I)
"""Refusals that are not the kernel's fault: the board is closed, the user unknown, ..."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    key TEXT PRIMARY KEY, board TEXT, gpu TEXT, mode TEXT, file_name TEXT, begun REAL, id INTEGER, answer TEXT
)
"""


class RegisteredSubmission(NamedTuple):
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

    def get(self, key: str) -> RegisteredSubmission | None:
        """Return the entry of a key."""
        with self._lock:
            row = self._database.execute("SELECT begun, id, answer FROM submissions WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return RegisteredSubmission(row[0], row[1], Submission.model_validate_json(row[2]) if row[2] else None)

    def begin(self, key: str, board: str, gpu: str, mode: str, file_name: str) -> None:
        """Write that a source is about to be sent."""
        row = (key, board, gpu, mode, file_name, time.time())
        self._write("INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)", *row)

    def accepted(self, key: str, number: int) -> None:
        """Write the id that the leaderboard gave."""
        self._write("UPDATE submissions SET id = ? WHERE key = ?", number, key)

    def ended(self, key: str, answer: Submission) -> None:
        """Write the final answer."""
        self._write("UPDATE submissions SET answer = ? WHERE key = ?", answer.model_dump_json(), key)

    def forget(self, key: str) -> None:
        """Remove an entry whose source the leaderboard did not accept or run."""
        self._write("DELETE FROM submissions WHERE key = ?", key)

    def _write(self, statement: str, *values: object) -> None:
        with self._lock:
            self._database.execute(statement, values)


class LeaderboardClient:
    """The leaderboard of one problem and GPU."""

    def __init__(self, api: Api, register: Register, board: str, settings: Kernelbot) -> None:
        """Raises SetupError if the leaderboard or its GPU is unknown, or does not know the user."""
        self.api, self.register, self.board, self.settings = api, register, board, settings
        self.stopped = threading.Event()
        gpus = self._gpus()
        if settings.gpu not in gpus:
            raise SetupError(
                f"leaderboard {board} has no GPU {settings.gpu!r} (kernelbot.gpu); it has: {', '.join(gpus)}"
            )

    def result(self, name: str, source: str, mode: str) -> Submission:
        """Return a source's ended submission; submit it unless that was done before, by whatever process.

        Raises KernelFailure if the leaderboard refuses the source, SetupError if it refuses any, InfrastructureError
        if it does not answer, end in time or run the source (then the next call submits it again), StoppedError once
        `stopped` is set.
        """
        key = digest(chr(0).join((self.board, self.settings.gpu, mode, source)))
        entry = self.register.get(key)
        answer, number = (entry.answer, entry.id) if entry is not None else (None, None)
        if answer is None:
            answer = self._ended(key, number or self._sent(key, entry, name, source, mode))
        verdict, reason = results.verdict(answer)
        if verdict is Verdict.INFRASTRUCTURE:
            self.register.forget(key)
            raise InfrastructureError(reason)
        return answer

    def _sent(self, key: str, entry: RegisteredSubmission | None, name: str, source: str, mode: str) -> int:
        """Return the id of a submission, made now unless the leaderboard has it already."""
        file_name, delay_s = f"{name}-{key[:MARK]}.py", self.settings.poll_s
        sent_at = entry.begun if entry else None  # a process that was killed may have sent it
        if entry is None:
            self.register.begin(key, self.board, self.settings.gpu, mode, file_name)
        until = time.monotonic() + self.settings.timeout_s
        while time.monotonic() < until:
            try:
                number = self._found(key, sent_at) if sent_at else None
                if number is None:
                    sent_at = time.time()
                    number = self._submitted(key, file_name, source, mode)
            except BusyError as error:
                sent_at = None
                progress.debug("the leaderboard asks to wait %.0f s", error.wait_s)
                self._wait(error.wait_s)
            except UnclearError as error:
                progress.warning("the leaderboard does not answer (%s); asking again in %.0f s", error, delay_s)
                self._wait(delay_s)
                delay_s = min(2 * delay_s, MOST_DELAY_S)
            except RefusedError as error:
                self.register.forget(key)
                if _SET_UP.search(str(error)):
                    raise SetupError(f"leaderboard {self.board}: {error}") from error
                raise KernelFailure(Verdict.REJECTED, f"the leaderboard refuses it: {error}") from error
            else:
                self.register.accepted(key, number)
                return number
        raise InfrastructureError(f"the leaderboard accepted no submission in {self.settings.timeout_s:g} s")

    def _submitted(self, key: str, file_name: str, source: str, mode: str) -> int:
        if not self.settings.events:
            return self.api.submit(self.board, self.settings.gpu, mode, file_name, source)
        with self.api.events(self.board, self.settings.gpu, mode, file_name, source) as events:
            return self._followed(key, events)

    def _followed(self, key: str, events: Iterator[Event]) -> int:
        """Follow the events to the end; return the submission's id, which is written as soon as it is known."""
        number: int | None = None
        try:
            for name, data in events:
                if name == "error" and number is None:
                    raise error_of(data)
                number = number or self._listed(key)
                if number is not None:
                    self.register.accepted(key, number)
                progress.debug("the leaderboard: %s, %s s", data.get("status", name), data.get("elapsed_time", "?"))
                if name in ("result", "error") or self.stopped.is_set():
                    break
        except UnclearError:
            if number is None:
                raise
        number = number or self._listed(key)
        if number is None:
            raise UnclearError("the stream ended before the submission was listed")
        return number

    def _found(self, key: str, sent_at: float) -> int | None:
        """Return the id of a submission that may have been accepted; None if it was not, which takes time to say."""
        while True:
            number = self._listed(key)
            if number is not None or time.time() - sent_at > self.settings.settle_s:
                return number
            self._wait(min(1.0, self.settings.poll_s))

    def _listed(self, key: str) -> int | None:
        return next((one.id for one in self.api.recent(self.board) if key[:MARK] in one.file_name), None)

    def _ended(self, key: str, number: int) -> Submission:
        until = time.monotonic() + self.settings.timeout_s
        while time.monotonic() < until:
            try:
                found = self.api.submission(number)
            except BusyError as error:
                self._wait(error.wait_s)
                continue
            except RefusedError as error:
                raise InfrastructureError(f"submission {number}: {error}") from error
            except UnclearError as error:
                progress.warning("the leaderboard does not answer (%s); submission %s is on record", error, number)
            else:
                if found.ended:
                    self.register.ended(key, found)
                    return found
                progress.debug("submission %s: %s", number, found.state)
            self._wait(self.settings.poll_s)
        raise InfrastructureError(
            f"submission {number} did not end in {self.settings.timeout_s:g} s; it is on record, the next call goes on"
        )

    def _gpus(self) -> list[str]:
        for delay_s in (1.0, 2.0, 5.0, 0.0):
            try:
                return self.api.gpus(self.board)
            except RefusedError as error:
                raise SetupError(f"leaderboard {self.board}: {error}") from error
            except (UnclearError, BusyError) as error:
                reason = error
                self._wait(delay_s)
        raise SetupError(f"the leaderboard does not answer: {reason}")

    def _wait(self, seconds: float) -> None:
        device_queue.progressed()
        if self.stopped.wait(seconds):
            raise StoppedError("stopped by a signal")
