"""Where a worker has mapped memory that it shares with the verifier, as the system tells it.

A second mapping, or one that was moved, is told like the first: an output that lies there is an input's memory,
whatever the worker says of it.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

Place = tuple[int, int]
"""Beginning and size in bytes."""


def parts(number: int, descriptor: int, places: Sequence[Place]) -> Iterator[Place]:
    """Yield what of these places of a process lies in a file that is open here, as places in that file.

    Raises OSError when the process cannot be asked.
    """
    status = os.fstat(descriptor)
    node = f" {os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x} {status.st_ino} "
    for line in Path(f"/proc/{number}/maps").read_text(errors="replace").splitlines():
        if node not in line:
            continue
        span, _, offset, *_ = line.split(maxsplit=3)
        low, high = (int(word, 16) for word in span.split("-"))
        for start, size in places:
            begin, end = max(low, start), min(high, start + size)
            if begin < end:
                yield int(offset, 16) + begin - low, end - begin
