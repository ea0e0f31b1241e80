"""The queue for this host's devices: a ticket for everyone who asks for one, in the order of asking.

A ticket is a file that its owner has locked (flock). The operating system unlocks it when the owner dies, however, and
whoever reads the queue removes it then. Tickets give the order and tell who holds what; that nobody else holds a device
is ensured by the device's own lock (`device_lock`), whatever becomes of the tickets.
"""

import contextlib
import fcntl
import itertools
import os
import pwd
import re
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist.records import environment
from kernel_scientist.records.base import Record

FOLDER = Path("/tmp/kernel-scientist.locks")
"""Folder of locks and queue: the same for all users of this host, whatever their TMPDIR. It is world-writable but not
sticky, because in sticky folders some systems forbid opening other users' files (fs.protected_regular)."""
QUEUE = "queue"
MOST_BYTES = 4096
"""Longest note that is read: other users may write anything here."""
TURN = re.compile(r"[0-9a-f]{32}")
"""Name of the lock of a turn (`device_lock.turn`)."""
TOUCH_S, ASLEEP_S = 1.0, 15.0
"""Least time between two signs of life, and the time without one after which somebody who waits loses precedence: it is
suspended, and a device would stay idle for it."""
_numbers = itertools.count()
_held: dict[int, "QueuePlace"] = {}
"""The places of this process that hold a device, by their number."""
_holding = threading.Lock()


class Note(Record):
    """Who asks for a device, and for what."""

    devices: tuple[str, ...]
    """Names of locks, any one of which is asked for."""
    purpose: str
    """Such as `time k00012`."""
    campaign: str = ""
    pid: int
    user: str
    host: str
    folder: str
    """The project's folder."""
    asked_s: float
    """Seconds since the epoch."""

    @classmethod
    def of_this_process(cls, devices: tuple[str, ...], purpose: str, campaign: str) -> "Note":
        """Return the note of this process."""
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a container may have no name for it
            user = str(os.getuid())
        return cls(
            devices=devices,
            purpose=purpose,
            campaign=campaign,
            pid=os.getpid(),
            user=user,
            host=socket.gethostname(),
            folder=str(environment.root()),
            asked_s=time.time(),
        )

    @property
    def words(self) -> str:
        """Return purpose, campaign and process, for a message."""
        campaign = f" of campaign {self.campaign}" if self.campaign else ""
        text = f"{self.purpose}{campaign} (process {self.pid} of {self.user} on {self.host}, {self.folder})"
        return "".join(c if c.isprintable() else "?" for c in text)  # another user may have written it


@dataclass(frozen=True)
class Ticket:
    """Somebody's ticket, as it was read."""

    order: str
    """Texts that compare in the order of asking."""
    note: Note | None
    """None if it could not be written or read."""
    device: str
    """The device that is held; empty for somebody who waits."""
    since_s: float
    """Since when it is held, in seconds since the epoch."""
    alive_s: float
    """The last sign of life, in seconds since the epoch: a holder's work went on, or somebody looked at the queue."""

    @property
    def words(self) -> str:
        """Return who it is and what for."""
        return self.note.words if self.note else "somebody who left no note"

    def wants(self, device: str) -> bool:
        """Whether it waits for a device, perhaps among others, and is not asleep."""
        waits = not self.device and self.note is not None and device in self.note.devices
        return waits and time.time() - self.alive_s < ASLEEP_S


def made_folder() -> Path:
    """Make the folder of tickets, and the one of locks around it, unless they exist; return it. May raise OSError."""
    for folder in (FOLDER, FOLDER / QUEUE):
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(PermissionError):  # another user's; it is world-writable already
            folder.chmod(0o777)
    return FOLDER / QUEUE


class QueuePlace:
    """A place of this process in the queue, from asking for a device until it is given back."""

    def __init__(self, note: Note) -> None:
        """Take a place at the end of the queue."""
        self.folder = made_folder()
        self._number = next(_numbers)
        while True:
            self.order = f"{time.monotonic_ns():020d}-{os.getpid()}-{self._number}"
            self._path = self.folder / self.order
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if os.fstat(self._file).st_nlink:
                break
            os.close(self._file)  # somebody took the ticket for a dead one's before it was locked
        with contextlib.suppress(OSError):  # on a full disk the queue goes on without notes
            os.fchmod(self._file, 0o644)
            os.write(self._file, note.model_dump_json().encode())
        self._touched = time.monotonic()

    def holds(self, device: str) -> None:
        """Say that this place holds a device now."""
        held = self.folder / f"{self.order}@{int(time.time() * 1000)}@{device}"
        with contextlib.suppress(OSError):
            os.utime(self._file)
            self._path = self._path.rename(held)
        with _holding:
            _held[self._number] = self

    def touch(self) -> None:
        """Give a sign of life, at most every TOUCH_S seconds."""
        if time.monotonic() - self._touched >= TOUCH_S:
            self._touched = time.monotonic()
            with contextlib.suppress(OSError):
                os.utime(self._file)

    def leave(self) -> None:
        """Give the place up."""
        with _holding:
            _held.pop(self._number, None)
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def progressed() -> None:
    """Say that this process's work on the devices that it holds goes on. It costs nothing where there is none."""
    if _held:
        with _holding:
            for place in _held.values():
                place.touch()


def tickets() -> list[Ticket]:
    """Return the tickets of all who wait for a device of this host or hold one, in the order of asking."""
    try:
        paths = sorted((FOLDER / QUEUE).iterdir())
    except FileNotFoundError:
        return []
    return [ticket for path in paths if (ticket := _read(path))]


def shown(lock: str) -> str:
    """Return a lock's name for people: that of a device, or that it is a turn, whose lock has a file's digest."""
    name = "".join(c if c.isprintable() else "?" for c in lock)  # another user may have written it
    return "a turn" if TURN.fullmatch(name) else name


def is_wanted(device: str) -> bool:
    """Whether anybody on this host waits for a device."""
    return any(ticket.wants(device) for ticket in tickets())


def _read(path: Path) -> Ticket | None:
    """Read a ticket; remove it and return None if its owner is dead."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # it was given up, or is becoming that of a holder
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text, alive_s = os.read(file, MOST_BYTES), os.fstat(file).st_mtime
    else:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    finally:
        os.close(file)
    order, _, held = path.name.partition("@")
    since_ms, _, device = held.partition("@")
    try:
        note = Note.model_validate_json(text)
    except ValidationError:
        note = None
    return Ticket(order, note, device, int(since_ms) / 1000 if since_ms.isdigit() else 0.0, alive_s)
