"""Why an act on the MLflow store failed, in the words of the database or the system, and whether waiting mends it.

MLflow's client does not wrap the errors of transport and database. Here all of them become StoreError, so that whoever
does not wait for the store ends with one sentence.
"""

import re
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel_scientist.records import disk
from kernel_scientist.records.errors import SetupError, StoppedError
from kernel_scientist.tracking import local_store

OURS = (SetupError, StoppedError, AssertionError, LookupError, TypeError, AttributeError)
"""Errors that no waiting mends: they are not of the store."""
CALLS = ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS")
LASTING = (*CALLS, "PERMISSION_DENIED")
"""Codes of MLflow's errors about a call itself, and of all that no waiting mends."""
DRIVERS = re.compile(r"\((?:sqlite3|psycopg2?|asyncpg|pymysql|MySQLdb)[\w.]*\) ([^\n]+)")
"""SQLAlchemy's message of an error of the database: other words may precede it, the statement follows."""
MOST = 200
"""Most characters of a reason."""


class StoreError(SetupError):
    """An act on the store failed; its cause says how. `may_pass`: whether another try may help (`access.insist`)."""

    def __init__(self, message: str, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass


@contextmanager
def told(uri: str) -> Generator[None]:
    """Turn errors of the store at `uri` into StoreError; those of this program, and about a call, stay as they are."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OURS) or _code(error) in CALLS:
            raise
        raise StoreError(f"the MLflow store {uri} cannot be used: {reason(error, uri)}", may_pass(error)) from error


class Client:
    """A client of MLflow's whose methods raise StoreError where the store at `uri` fails."""

    def __init__(self, client: Any, uri: str) -> None:
        self._client, self._uri = client, uri

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._client, name)
        return told(self._uri)(act) if callable(act) else act


def may_pass(error: BaseException) -> bool:
    """Whether an error of an act on the store may be over when the act is tried again."""
    if isinstance(error, StoreError):
        return error.may_pass
    return isinstance(error, Exception) and not isinstance(error, OURS) and _code(error) not in LASTING


def _code(error: BaseException) -> str:
    return getattr(error, "error_code", "")


def reason(error: BaseException, uri: str) -> str:
    """Return why an act on the store at `uri` failed, on one line; of a full disk, with the space that is left."""
    cause = error.__cause__ if isinstance(error, StoreError) else None
    words, place = _words(cause or error, local_store.database(uri))
    if place is None:
        return words[:MOST]
    return f"{words[:MOST]} ({disk.free(place.parent)})"


def _words(error: BaseException, database: Path | None) -> tuple[str, Path | None]:
    """Return the reason and, if a disk is full, the file that could not be written and is on this machine."""
    for cause in disk.causes(error):
        if isinstance(cause, OSError) and disk.is_full(cause):
            return str(cause.strerror), Path(str(cause.filename)) if cause.filename else database
        if isinstance(cause, sqlite3.Error):
            return str(cause), database if disk.is_full(cause) else None
    text = str(error).strip() or type(error).__name__
    if found := DRIVERS.search(text):  # a server passes the message on
        return found[1], None
    for cause in disk.causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror + (f": {cause.filename}" if cause.filename else ""), None
    return text.splitlines()[0], None
