"""Why an act on the MLflow store failed, in the words of the database or the system, and whether waiting mends it."""

import re
import sqlite3
from pathlib import Path

from kernel_scientist.records import disk
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.tracking import local_store

OURS = (StoppedError, AssertionError, LookupError, TypeError, AttributeError)
"""Errors that no waiting mends."""
LASTING = ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS", "PERMISSION_DENIED")
"""Codes of MLflow's errors that no waiting mends."""
DRIVERS = re.compile(r"\((?:sqlite3|psycopg2?|asyncpg|pymysql|MySQLdb)[\w.]*\) ([^\n]+)")
"""SQLAlchemy's message of an error of the database: other words may precede it, the statement follows."""
MOST = 200
"""Most characters of a reason."""


def may_pass(error: BaseException) -> bool:
    """Whether an error of an act on the store may be over when the act is tried again."""
    lasting = isinstance(error, OURS) or getattr(error, "error_code", "") in LASTING
    return isinstance(error, Exception) and not lasting  # MLflow's client does not wrap transport and database errors


def reason(error: BaseException, uri: str) -> str:
    """Return why an act on the store at `uri` failed, on one line; of a full disk, with the space that is left."""
    words, place = _words(error, local_store.database(uri))
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
