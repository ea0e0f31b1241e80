"""A progress line on standard error: what is being done, from a second after the start."""

import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

AFTER_S = 1.0
"""Nothing is shown of what ends sooner, in seconds."""


class _Line(logging.Handler):
    """Shows messages: on a terminal each replaces the one before, elsewhere each is a line."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._latest, self._due = "starting", False
        self._overwrite = level == logging.DEBUG and sys.stderr.isatty()
        self._timer = threading.Timer(AFTER_S, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning on a line that stays; another message once the first second is over."""
        if record.levelno >= logging.WARNING:
            sys.stderr.write(("\r\033[K" if self._overwrite else "") + f"warning: {record.getMessage()}\n")
            sys.stderr.flush()
            return
        self._latest = record.getMessage()
        if self._due:
            self._show()

    def _begin(self) -> None:
        self._due = True
        self._show()

    def _show(self) -> None:
        text = f"\r\033[K{self._latest} ..." if self._overwrite else f"{self._latest} ...\n"
        sys.stderr.write(text)
        sys.stderr.flush()

    def end(self) -> None:
        """End the line. Not `close`: Prefect configures logging when a flow begins, which closes every handler."""
        self._timer.cancel()
        if self._due and self._overwrite:
            sys.stderr.write("\r\033[K")
        self._due = False


@contextmanager
def shown(steps: bool = True, quiet: bool = False) -> Generator[None]:
    """Show what `kernel_scientist.progress` logs while the context is open.

    `steps`: False leaves out the steps of single kernels (level DEBUG), which a campaign shows in its own way. `quiet`:
    show nothing.
    """
    logger = logging.getLogger("kernel_scientist.progress")
    logger.propagate = False
    if quiet:
        logger.setLevel(logging.CRITICAL)
        yield
        return
    line = _Line(logging.DEBUG if steps else logging.INFO)
    logger.addHandler(line)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(line)
        line.end()
