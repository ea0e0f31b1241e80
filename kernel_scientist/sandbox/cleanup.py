"""Size and removal of folders that a kernel could write to. Imports only the standard library."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

DEEPEST = 64
"""Deepest nesting of folders that is searched."""


def used(folder: Path) -> int | None:
    """Return the size of a folder in bytes; None if folders in it are locked or nested too deeply."""
    total = 0
    try:
        for root, folders, names in os.walk(folder, onerror=_refuse):
            if folders and len(Path(root).relative_to(folder).parts) >= DEEPEST:
                return None
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # the running worker may delete files
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
    except OSError:
        return None
    return total


def remove(folder: Path) -> None:
    """Remove the folder of a process that has ended, as far as permissions allow."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():  # folders in it are locked, or too deep for Python
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, str(folder)], capture_output=True, check=False)


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
