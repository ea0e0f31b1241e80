"""Ctrl-C, SIGTERM and SIGHUP: the first ends a campaign at a safe point, the second at once. Both say how to go on.

Before there is a campaign, each ends the command at once: nothing is lost.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kernel_scientist.records.errors import StoppedError

EXIT_CODE = 130
REASONS = {
    signal.SIGINT: "Ctrl-C stopped it",
    signal.SIGTERM: "it was stopped by a signal or cancelled (SIGTERM)",
    signal.SIGHUP: "its terminal was closed (SIGHUP)",
}
_requested = threading.Event()
"""Set by the first signal."""
_numbers: list[int] = []
"""The first signal."""
_going_on: list[str] = []
"""What is kept and how to go on with it, once something is recorded."""


def why() -> str:
    """Return why a campaign was stopped."""
    return next((REASONS[signal.Signals(number)] for number in _numbers), "it was stopped")


def is_requested() -> bool:
    """Whether a signal asked for the end of what runs."""
    return _requested.is_set()


def was_interrupted(error: BaseException) -> bool:
    """Whether an error comes of a signal: a library that is being imported makes another one of KeyboardInterrupt."""
    chain: BaseException | None = error
    while chain is not None and not isinstance(chain, KeyboardInterrupt):
        chain = chain.__cause__ or chain.__context__
    return chain is not None or (bool(_numbers) and not _requested.is_set())


def check() -> None:
    """Raise StoppedError if a signal asked for the end."""
    if _requested.is_set():
        raise StoppedError(why())


def began(how: str) -> None:
    """Note that something is recorded from now on. `how`: what is kept, and how to go on with it."""
    _going_on[:] = [how]


def sentence() -> str:
    """Return the message for what was stopped."""
    return f"stopped; {_going_on[0]}" if _going_on else "stopped before the campaign began: nothing was recorded"


def leave() -> None:
    """End this process if a signal asked for it and all work has ended: taking down its libraries takes seconds."""
    if _numbers:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_CODE)


def _handled() -> list[signal.Signals]:
    """Return the signals that end a campaign. `nohup` has SIGHUP ignored, which stays so."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [one for one in REASONS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]


@contextmanager
def interruptible() -> Generator[None]:
    """Let each signal interrupt as Ctrl-C does, until `stoppable` begins and once it has ended."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a shell whose terminal is closed sends another one
        _numbers[:] = [number]
        raise KeyboardInterrupt

    _going_on.clear()  # an earlier campaign of this process may have been recorded
    _numbers.clear()
    before: dict[int, Any] = {number: signal.signal(number, interrupt) for number in _handled()}
    try:
        yield
    finally:
        if not _requested.is_set():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def stoppable(close: Callable[[], None]) -> Generator[Callable[[], None]]:
    """Handle the signals; an exception raised by a handler, inside of Prefect's engine, would break it.

    The first signal calls `close`, so running experiments end with StoppedError, and lets the check that is yielded
    raise it. The second ends this process; its servers and workers end with it, and the next command closes its run.
    """

    def request(number: int, _frame: FrameType | None) -> None:
        if _requested.is_set() and number == signal.SIGHUP:
            return  # a shell whose terminal is closed sends another one: nobody asked twice
        if _requested.is_set():
            with contextlib.suppress(OSError):  # the terminal may be gone
                os.write(2, f"\n{sentence()}\n".encode())  # not print: the interrupted code may be in one
            os._exit(EXIT_CODE)
        _numbers.append(number)
        _requested.set()
        # in a thread: the interrupted code may hold a lock that `close` needs
        threading.Thread(target=close).start()

    _numbers.clear()
    _requested.clear()  # an earlier flow of this process may have been stopped
    before: dict[int, Any] = {number: signal.signal(number, request) for number in _handled()}
    try:
        yield check
    finally:
        if not _requested.is_set():  # else a second signal still counts while servers are stopped
            for number, handler in before.items():
                signal.signal(number, handler)
