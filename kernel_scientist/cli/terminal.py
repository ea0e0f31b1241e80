"""Standard output and standard error of a campaign, which goes on when nobody reads them any more."""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GONE = (errno.EPIPE, errno.EIO)
"""What the system says where a pipe's reader has ended, or a terminal is closed."""


class _Outlasting(io.FileIO):
    """A file that is written to nowhere once nobody reads it."""

    def write(self, text: "ReadableBuffer", /) -> int | None:
        """Write some bytes; return how many."""
        try:
            return super().write(text)
        except OSError as error:
            if error.errno not in GONE:
                raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        return super().write(text)


def outlast() -> None:
    """Let this process go on, without a word, once nobody reads its standard output or standard error."""
    sys.stdout, sys.stderr = _outlasting(sys.stdout), _outlasting(sys.stderr)


def _outlasting(stream: TextIO) -> TextIO:
    if not stream or stream not in (sys.__stdout__, sys.__stderr__):  # a test or a notebook reads it
        return stream
    stream.flush()
    file = _Outlasting(stream.fileno(), "w", closefd=False)
    is_by_line = isinstance(stream, io.TextIOWrapper) and stream.line_buffering
    return io.TextIOWrapper(io.BufferedWriter(file), stream.encoding, stream.errors, line_buffering=is_by_line)
