"""Locks that every process on this host shares: one timing at a time per device, turns at a shared file."""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from kernel_scientist.records.errors import DeviceBusyError, StoppedError

FOLDER = Path("/tmp/kernel-scientist.locks")
"""Folder of the locks: the same for all users of this host, whatever their TMPDIR. It is world-writable but not sticky,
because in sticky folders some systems forbid opening other users' files (fs.protected_regular)."""

POLL_S = 0.02


class Turn:
    """The right to use a device once. It may be taken in one step of the work and given back in another."""

    def __init__(self, hold: Callable[[float], contextlib.AbstractContextManager[object]]) -> None:
        """`hold`: returns a context that holds the device and waits for it so many seconds at most, as `device`."""
        self._hold, self._held = hold, contextlib.ExitStack()
        self.is_held = False
        """Whether this turn holds the device."""

    def take(self, wait_s: float) -> None:
        """Hold the device. Raises DeviceBusyError if it is not free within `wait_s` seconds."""
        self._held.enter_context(self._hold(wait_s))
        self.is_held = True

    def taken_at_once(self) -> bool:
        """Hold the device if it is free; return whether it is held."""
        with contextlib.suppress(DeviceBusyError):
            self.take(0.0)
        return self.is_held

    def __enter__(self) -> None:
        """Keep what was taken until the context is closed."""

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Release the device if it is held."""
        self.is_held = False
        self._held.close()


@contextlib.contextmanager
def device(name: str, timeout_s: float, stopped: threading.Event | None = None) -> Generator[None]:
    """Hold the lock of device `name`; the operating system releases it if this process dies.

    Raises DeviceBusyError after `timeout_s` seconds, StoppedError once `stopped` is set.
    """
    with one_of([name], timeout_s, stopped):
        yield


@contextlib.contextmanager
def turn(file: Path, stopped: threading.Event) -> Generator[None]:
    """Take turns with the other processes of this host that read and then replace a file; wait as long as it takes.

    Raises StoppedError once `stopped` is set.
    """
    with one_of([hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:32]], float("inf"), stopped):
        yield


@contextlib.contextmanager
def one_of(names: Sequence[str], timeout_s: float, stopped: threading.Event | None = None) -> Generator[str]:
    """Hold the lock of the first device that is free, and yield its name. Raises as `device`."""
    from filelock import FileLock, Timeout

    FOLDER.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user created the folder; it is already world-writable
        FOLDER.chmod(0o777)
    paths = {name: FOLDER / f"{name}.lock" for name in names}
    until = time.monotonic() + timeout_s
    while True:
        for name, path in paths.items():
            try:
                held = FileLock(path, mode=0o666, thread_local=False).acquire(blocking=False)
            except Timeout:
                continue
            with held:
                yield name
            return
        if time.monotonic() > until:
            raise DeviceBusyError(
                f"device {', '.join(names)} was busy for {timeout_s:g} s (another timing holds "
                f"{', '.join(map(str, paths.values()))}, this is process {os.getpid()})"
            )
        if stopped is None:
            time.sleep(POLL_S)
        elif stopped.wait(POLL_S):
            raise StoppedError("stopped while waiting for a device")
