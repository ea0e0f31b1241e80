"""Folders that a kernel could write to: measured and removed whatever it left there, however deep and however locked.

Nothing here recurses, holds many folders open or needs a long path. Imports only the standard library.
"""

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path

DEEPEST = 64
"""Folders in one another; of a folder that holds more it is not said how much there is in it."""


def used(folder: Path) -> int | None:
    """Return how many bytes lie in a folder; None where that cannot be found out."""
    total, waiting = 0, [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue  # its owner lives, and may tidy up
        except OSError:
            return None  # locked
        if depth > DEEPEST:
            return None
    return total


def remove(folder: Path) -> None:
    """Remove a folder of nobody that lives, as far as the system allows it.

    What lies deeper is moved up, so it never matters how deep.
    """
    with contextlib.suppress(OSError):
        with _opened(str(folder)) as top:
            before: set[str] = set()
            while (names := set(os.listdir(top))) and names != before:
                before = names
                for name in names:
                    _remove_one(name, top)
        folder.rmdir()


def _remove_one(name: str, top: int) -> None:
    """Remove a file, or a folder whose own folders are moved up to `top`."""
    with contextlib.suppress(OSError):
        try:
            os.unlink(name, dir_fd=top)
        except (IsADirectoryError, PermissionError):
            with _opened(name, top) as within:
                for inner in os.listdir(within):
                    _lift(inner, within, top)
            os.rmdir(name, dir_fd=top)


def _lift(name: str, within: int, top: int) -> None:
    with contextlib.suppress(OSError):
        try:
            os.unlink(name, dir_fd=within)
        except (IsADirectoryError, PermissionError):
            with _opened(name, within):  # one that may not be written to cannot be moved
                os.rename(name, secrets.token_hex(16), src_dir_fd=within, dst_dir_fd=top)


@contextlib.contextmanager
def _opened(name: str, within: int | None = None) -> Generator[int]:
    """Open a folder, no link to one, after unlocking it."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    try:
        with contextlib.suppress(OSError):
            os.chmod(f"/proc/self/fd/{place}", 0o700)
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place)
    finally:
        os.close(place)
    try:
        yield folder
    finally:
        os.close(folder)
