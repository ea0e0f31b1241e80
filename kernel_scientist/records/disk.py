"""A full disk: what is free, how to tell one from other errors, and waiting for room. It is nobody's mistake."""

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from kernel_scientist.records.patience import WAIT_S, Patience

T = TypeVar("T")
MB = 1_000_000
LEAST_BYTES = 4 * MB
"""A disk with less than this is full: a build needs so much for a moment."""
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_DATABASE = "database or disk is full"
"""SQLite's words."""
POLL_S = 2.0
"""How often room is looked for, in seconds."""


def existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def try_folder(folder: Path) -> None:
    """Write to a folder, or where it would be made, and leave nothing. Raises OSError."""
    folder = folder.absolute()
    with tempfile.TemporaryFile(dir=next(place for place in (folder, *folder.parents) if place.exists())):
        pass


def try_database(file: Path) -> None:
    """Begin to write to an SQLite database, if there is one; one that another process writes to is fine.

    Raises sqlite3.DatabaseError.
    """
    if not file.exists():
        return
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise


def free_bytes(folder: Path) -> int:
    """Return what is free for a folder, which need not exist."""
    return shutil.disk_usage(existing(folder)).free


def free(folder: Path) -> str:
    """Return what is free for a folder, for people."""
    return f"{free_bytes(folder) / MB:.3g} MB are free for {folder}"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def is_full(error: BaseException) -> bool:
    """Whether one error by itself, not those that led to it, is that of a full disk or a quota that is used up."""
    if isinstance(error, OSError):
        return error.errno in FULL
    return isinstance(error, sqlite3.Error) and FULL_DATABASE in str(error)


def insist(act: Callable[[], T], folder: Path, stopped: threading.Event, wait_s: float = WAIT_S) -> T:
    """Return what `act` returns, which writes into a folder and may be called again; wait while the disk is full.

    Raises as `Patience.insist`.
    """

    def reason(error: Exception) -> str | None:
        return free(folder) if any(is_full(cause) for cause in causes(error)) else None

    again = "there is room on the disk again"
    return Patience("room on the disk", again, "the disk was full", reason, (POLL_S,), wait_s).insist(act, stopped)


def await_room(folder: Path, stopped: threading.Event, wait_s: float = WAIT_S) -> None:
    """Wait until there is room for a build in a folder. Raises like `insist`."""

    def look() -> None:
        if free_bytes(folder) < LEAST_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    insist(look, folder, stopped, wait_s)
