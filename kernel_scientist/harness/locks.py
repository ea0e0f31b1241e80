"""One timing at a time per device: a lock that every process on this host shares."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kernel_scientist.errors import DeviceBusyError


@contextmanager
def device(name: str, timeout_s: float) -> Generator[None]:
    """Hold the device `name` exclusively; the system frees it if the holder dies.

    Raises DeviceBusyError after `timeout_s` seconds.
    """
    from filelock import FileLock, Timeout

    path = Path(tempfile.gettempdir()) / f"kernel-scientist-{name}.lock"
    lock = FileLock(path, timeout=timeout_s, mode=0o666, thread_local=False)
    try:
        lock.acquire(poll_interval=0.02)
    except Timeout as error:
        raise DeviceBusyError(
            f"device {name} was busy for {timeout_s:g} s (another timing holds {path}, this is process {os.getpid()})"
        ) from error
    try:
        yield
    finally:
        lock.release()
