"""One timing at a time per device: a lock that every process on this host shares."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from kernel_scientist.records.errors import DeviceBusyError

FOLDER = Path("/tmp/kernel-scientist.locks")
"""Folder of the locks: the same for all users of this host, whatever their TMPDIR. It is world-writable but not sticky,
because in sticky folders some systems forbid opening other users' files (fs.protected_regular)."""


@contextlib.contextmanager
def device(name: str, timeout_s: float) -> Generator[None]:
    """Hold the lock of device `name`; the operating system releases it if this process dies.

    Raises DeviceBusyError after `timeout_s` seconds.
    """
    from filelock import FileLock, Timeout

    FOLDER.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user created the folder; it is already world-writable
        FOLDER.chmod(0o777)
    path = FOLDER / f"{name}.lock"
    try:
        held = FileLock(path, timeout=timeout_s, mode=0o666, thread_local=False).acquire(poll_interval=0.02)
    except Timeout as error:
        raise DeviceBusyError(
            f"device {name} was busy for {timeout_s:g} s (another timing holds {path}, this is process {os.getpid()})"
        ) from error
    with held:
        yield
