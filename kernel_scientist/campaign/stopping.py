"""Ctrl-C and SIGTERM: the first ends a campaign at a safe point, the second at once. Both say how to go on."""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kernel_scientist.records.errors import StoppedError

EXIT_CODE = 130
REASONS = {signal.SIGINT: "Ctrl-C stopped it", signal.SIGTERM: "it was stopped by a signal or cancelled (SIGTERM)"}
_requested = threading.Event()
"""Set by the first signal."""
_numbers: list[int] = []
"""The first signal."""


def why() -> str:
    """Return why a campaign was stopped."""
    return next((REASONS[signal.Signals(number)] for number in _numbers), "it was stopped")


def is_requested() -> bool:
    """Whether a signal asked for the end of what runs."""
    return _requested.is_set()


def sentence() -> str:
    """Return the message for a campaign that was stopped."""
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    command = ["optimize", "--resume", *given[1:]] if given[:1] == ["optimize"] else ["optimize", "--resume"]
    return f"stopped; logged kernels are kept: continue with `kernel-scientist {shlex.join(command)}`"


def leave() -> None:
    """End this process if a signal asked for it and all work has ended: taking down its libraries takes seconds."""
    if _requested.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_CODE)


@contextmanager
def stoppable(close: Callable[[], None]) -> Generator[Callable[[], None]]:
    """Handle both signals; an exception raised by a handler, inside of Prefect's engine, would break it.

    The first signal calls `close`, so running experiments end with StoppedError, and lets the check that is yielded
    raise it. The second ends this process; its servers and workers end with it, and the next command closes its run.
    """

    def request(number: int, _frame: FrameType | None) -> None:
        if _requested.is_set():
            os.write(2, f"\n{sentence()}\n".encode())  # not print: the interrupted code may be in the middle of one
            os._exit(EXIT_CODE)
        _numbers.append(number)
        _requested.set()
        # in a thread: the interrupted code may hold a lock that `close` needs
        threading.Thread(target=close).start()

    def check() -> None:
        if _requested.is_set():
            raise StoppedError(why())

    _numbers.clear()
    _requested.clear()  # an earlier flow of this process may have been stopped
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before |= {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield check
    finally:
        if not _requested.is_set():  # else a second signal still counts while servers are stopped
            for number, handler in before.items():
                signal.signal(number, handler)
