"""Locks that every process on this host shares: one timing at a time per device, turns at a shared file.

Requests are served in the order in which they were made (`device_queue`). A waiting process logs who holds the lock,
since when and for what.
A wait does not fail because it is long, but because nothing moves: neither the queue nor the holder's work.
"""

import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from kernel_scientist.records.errors import DeviceBusyError, StoppedError
from kernel_scientist.sandbox import device_queue
from kernel_scientist.sandbox.device_queue import Note, QueuePlace, Ticket

POLL_S, LATER_S = 0.05, 0.5
"""Seconds between two looks of who is next, and of those behind: a look takes time from the timing it waits for."""
LONG_S = 60.0
"""A wait of so many seconds is worth a warning, and another one after each further such time."""
progress = logging.getLogger("kernel_scientist.progress")


class Turn:
    """The right to use a device once. It may be taken in one step of the work and given back in another."""

    def __init__(self, hold: Callable[[float], contextlib.AbstractContextManager[object]]) -> None:
        """`hold`: returns a context that holds the device; the argument is `still_s` of `device`."""
        self._hold, self._held = hold, contextlib.ExitStack()
        self.is_held = False
        """Whether this turn holds the device."""

    def take(self, still_s: float) -> None:
        """Hold the device. Raises DeviceBusyError if nothing moves for `still_s` seconds while others hold it."""
        self._held.enter_context(self._hold(still_s))
        self.is_held = True

    def taken_at_once(self) -> bool:
        """Hold the device if it is free and nobody waits for it; return whether it is held."""
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
def device(
    name: str,
    still_s: float,
    stopped: threading.Event | None = None,
    purpose: str = "a timing",
    campaign: str = "",
) -> Generator[None]:
    """Hold the lock of device `name`; the operating system releases it if this process dies.

    `purpose`, `campaign`: what others read who wait for it. Raises DeviceBusyError when for `still_s` seconds neither
    the queue moved nor the holder made progress (0: unless the device is free at once), StoppedError once `stopped` is
    set.
    """
    with _first([name], f"device {name}", still_s, stopped, purpose, campaign):
        yield


@contextlib.contextmanager
def turn(file: Path, stopped: threading.Event, purpose: str = "read and replace a file") -> Generator[None]:
    """Take turns with the other processes of this host that read and then replace a file; wait as long as it takes.

    `purpose`: as for `device`. Raises StoppedError once `stopped` is set.
    """
    name = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:32]
    with _first([name], f"the turn to {purpose}", float("inf"), stopped, purpose, ""):
        yield


@contextlib.contextmanager
def one_of(
    names: Sequence[str],
    still_s: float,
    stopped: threading.Event | None = None,
    purpose: str = "a timing",
    campaign: str = "",
) -> Generator[str]:
    """Hold the lock of the first device that is free and that nobody asked for earlier; yield its name. As `device`."""
    with _first(names, f"device {', '.join(names)}", still_s, stopped, purpose, campaign) as name:
        yield name


@contextlib.contextmanager
def _first(
    names: Sequence[str], what: str, still_s: float, stopped: threading.Event | None, purpose: str, campaign: str
) -> Generator[str]:
    """As `one_of`; `what`: how messages call that which is waited for."""
    with contextlib.ExitStack() as stack:
        place = QueuePlace(Note.of_this_process(tuple(names), purpose, campaign))
        stack.callback(place.leave)
        waiting = _Waiting(names, what, place, still_s)
        while (held := _free(names, place, known := device_queue.tickets())) is None:
            pause_s = POLL_S if waiting.look(known) else LATER_S
            if stopped is None:
                time.sleep(pause_s)
            elif stopped.wait(pause_s):
                raise StoppedError("stopped while waiting for a device")
        name, lock = held
        stack.enter_context(lock)
        place.holds(name)
        yield name


def _free(
    names: Sequence[str], place: QueuePlace, known: Sequence[Ticket]
) -> tuple[str, contextlib.AbstractContextManager[object]] | None:
    """Lock the first device that is free and that nobody asked for earlier; return its name and what releases it."""
    from filelock import FileLock, Timeout

    earlier = [ticket for ticket in known if ticket.order < place.order]
    for name in names:
        if any(ticket.wants(name) for ticket in earlier):
            continue
        with contextlib.suppress(Timeout):
            path = device_queue.FOLDER / f"{name}.lock"
            return name, FileLock(path, mode=0o666, thread_local=False).acquire(blocking=False)
    return None


class _Waiting:
    """Somebody's wait: says what is waited for, and ends it when nothing moves."""

    def __init__(self, names: Sequence[str], what: str, place: QueuePlace, still_s: float) -> None:
        self.names, self.what, self.place, self.still_s = names, what, place, still_s
        self._began = self._moved = self._warned = time.monotonic()
        self._seen, self._said = tuple[tuple[str, float], ...](), ""

    def look(self, known: Sequence[Ticket]) -> bool:
        """Look at the queue; return whether this wait is the next to end. Raises DeviceBusyError when nothing has moved
        for too long."""
        now, holders, ahead = time.monotonic(), list[Ticket](), list[Ticket]()
        self.place.touch()
        for ticket in known:
            if ticket.device in self.names:
                holders.append(ticket)
            elif ticket.order < self.place.order and any(map(ticket.wants, self.names)):
                ahead.append(ticket)
        seen = tuple((t.order, t.alive_s if t.device else 0.0) for t in (*holders, *ahead))
        if seen != self._seen:
            self._seen, self._moved = seen, now
        held = self._holder(holders, ahead)
        if now - self._moved >= self.still_s:
            raise DeviceBusyError(f"{self.what} was busy {self._still(now)}: {held}{self._advice(holders)}")
        said = f"{[t.words for t in holders]} {len(ahead)}"
        told = f"{held}, place {len(ahead) + 1} in the queue"
        if said != self._said:
            progress.debug("waiting for %s: %s", self.what, told)
        if now - self._warned >= LONG_S:
            self._warned = now
            progress.info("waiting for %s for %.0f s: %s", self.what, now - self._began, told)
        self._said = said
        return not ahead

    def _still(self, now: float) -> str:
        if not self.still_s:
            return "when it was asked for"
        return f"for {self.still_s:g} s in which nothing moved (waited {now - self._began:.0f} s)"

    def _holder(self, holders: Sequence[Ticket], ahead: Sequence[Ticket]) -> str:
        if not holders and ahead:
            return f"next is {ahead[0].words}"
        if not holders:
            locks = ", ".join(str(device_queue.FOLDER / f"{name}.lock") for name in self.names)
            return f"held by a process that left no note: it has locked {locks}"
        return "; ".join(
            f"held since {time.strftime('%H:%M:%S', time.localtime(t.since_s))} "
            f"({max(0.0, time.time() - t.since_s):.0f} s) by {t.words}"
            for t in holders
        )

    def _advice(self, holders: Sequence[Ticket]) -> str:
        if not self.still_s:
            return ""
        known = [ticket.note.pid for ticket in holders if ticket.note]
        look = f"look at process {', '.join(map(str, known))}" if known else "find the process by `fuser`"
        return f"; {look}, stop it if it hangs, or wait longer: harness.device_wait_s"
