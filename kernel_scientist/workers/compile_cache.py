"""What a worker compiled on a GPU, kept for the next worker with the very same source: Triton would compile it anew.

The files are a kernel's own word and go to nobody but itself: to its own source, below the same parent process. What
they could carry from one worker to the next is of no use, as no two calls have the same inputs. ForkServer's side.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from kernel_scientist.sandbox import cleanup

OURS = "harness"
"""Whose keepsake every worker gets: what the harness's own kernels (`masks`) were compiled to, kept before others."""
MOST_BYTES, MOST_FILES = 256 << 20, 20_000
"""What is kept of one worker at the most; of one that left more, nothing."""


def keep(scratch: Path, place: Path) -> int:
    """Copy a worker's files to `place`, if nothing is there; return how many are. Only plain files and folders are."""
    if place.exists() or not scratch.is_dir():
        return 0
    part = place.with_name(f"{place.name}.part")
    cleanup.remove(part)
    copied = None
    with contextlib.suppress(OSError, RecursionError):  # folders too deep for it
        copied = _copy(scratch, part)
    if copied is None:
        cleanup.remove(part)
        return 0
    part.replace(place)
    return copied


def fill(place: Path, scratch: Path) -> int:
    """Copy what was kept into a fresh worker's folder; return how many files."""
    return _copy(place, scratch) or 0 if place.is_dir() and scratch.is_dir() else 0


def _copy(source: Path, target: Path) -> int | None:
    """Copy plain files, to whom `target` belongs; None when there are too many.

    By descriptors: nothing leads out of `source`.
    """
    count = size = 0
    target.mkdir(exist_ok=True)
    owner = target.stat().st_uid, target.stat().st_gid
    for root, _, names, folder in os.fwalk(source):
        place = target / Path(root).relative_to(source)
        place.mkdir(exist_ok=True)
        os.chown(place, *owner)
        for name in names:
            with contextlib.suppress(OSError), open(name, "rb", opener=_Opener(folder)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    continue
                count, size = count + 1, size + status.st_size
                if count > MOST_FILES or size > MOST_BYTES:
                    return None
                with (place / name).open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                (place / name).chmod(0o755)  # launchers are shared objects
                os.chown(place / name, *owner)
    return count


class _Opener:
    """Opens a name in a folder that is held open: no link, and no pipe that nobody writes to."""

    def __init__(self, folder: int) -> None:
        self.folder = folder

    def __call__(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.folder)
