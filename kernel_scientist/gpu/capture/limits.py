"""Limits of CPU time for parts of the untrusted process. Imports the standard library only."""

import contextlib
import signal
from collections.abc import Generator
from typing import Any


class TimeLimitError(Exception):
    """A part of the work took more CPU time than it may take."""


@contextlib.contextmanager
def cpu_seconds(most: float, what: str) -> Generator[None]:
    """Raise TimeLimitError within the context after `most` seconds of CPU time, between two steps of Python.

    An outer limit goes on after an inner one. What catches every exception may swallow the error, so it is raised
    again every second.
    """

    def over(*_: Any) -> None:
        raise TimeLimitError(f"{what} took more than {most:g} s of CPU time")

    handler = signal.signal(signal.SIGVTALRM, over)
    left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, most, 1.0)
    try:
        yield
    finally:
        used = most - signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
        signal.signal(signal.SIGVTALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(0.01, left - used), 1.0)
