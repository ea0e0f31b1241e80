"""Folders that a kernel could write to: how much lies there, and their removal. Imports only the standard library."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

DEEPEST = 64
"""Levels of folders that are searched."""


def used(folder: Path) -> int | None:
    """Return how many bytes lie in a folder; None if folders in it are locked or too deep."""
    total = 0
    try:
        for root, folders, names in os.walk(folder, onerror=_refuse):
            if folders and len(Path(root).relative_to(folder).parts) >= DEEPEST:
                return None
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # its owner lives, and may tidy up
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
    except OSError:
        return None
    return total


def remove(folder: Path) -> None:
    """Remove a folder whose owner has ended, as far as the system allows it."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():  # folders in it are locked, or too deep for Python
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, str(folder)], capture_output=True, check=False)


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
