"""A full disk: what is free, how to tell one from other errors, and waiting for room. It is nobody's mistake."""

import errno
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from kernel_scientist.records.errors import InfrastructureError, StoppedError

T = TypeVar("T")
MB = 1_000_000
LEAST_BYTES = 4 * MB
"""A disk with less than this is full: a build needs so much for a moment."""
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_DATABASE = "database or disk is full"
"""SQLite's words."""
WAIT_S, POLL_S = 900.0, 2.0
"""How long room is waited for, and how often it is looked for, in seconds."""
progress = logging.getLogger("kernel_scientist.progress")


def existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.is_dir())


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
    """Return what `act` returns, which writes into a folder and may be called again; a full disk is waited for.

    The first failure is told in a line. Raises InfrastructureError after `wait_s` seconds, StoppedError once `stopped`
    is set.
    """
    start, since, told = time.monotonic(), datetime.now(), False
    while True:
        try:
            result = act()
        except Exception as error:
            if not any(is_full(cause) for cause in causes(error)):
                raise
            if time.monotonic() - start > wait_s:
                raise InfrastructureError(
                    f"the disk is full ({free(folder)}) for {wait_s / 60:.0f} min; what was recorded before is kept, "
                    "and `kernel-scientist optimize --resume` continues"
                ) from error
            if not told:
                times = f"{since:%H:%M:%S}", f"{since + timedelta(seconds=wait_s):%H:%M:%S}"
                progress.warning("waiting since %s, until %s, for room on the disk: %s", *times, free(folder))
                told = True
            if stopped.wait(POLL_S):
                raise StoppedError("stopped by a signal") from error
        else:
            if told:
                progress.warning("there is room on the disk again, after %.0f s", time.monotonic() - start)
            return result


def await_room(folder: Path, stopped: threading.Event, wait_s: float = WAIT_S) -> None:
    """Wait until there is room for a build in a folder. Raises like `insist`."""

    def look() -> None:
        if free_bytes(folder) < LEAST_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    insist(look, folder, stopped, wait_s)
