"""Facts about a worker's process, from the system and never from the worker."""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process of this host."""

    number: int

    def exists(self) -> bool:
        """Whether it has not ended."""
        return Path(f"/proc/{self.number}").exists()

    def threads(self) -> list[tuple[int, bool]]:
        """Return for each thread how many filters of system calls it has, and whether it has children.

        A thread that ends meanwhile does not count. A worker adopts what its own children leave behind
        (`sandbox.adopt_orphans`).
        """
        found: list[tuple[int, bool]] = []
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):
                status = (task / "status").read_text()
                filters = next((line.split()[1] for line in status.splitlines() if line.startswith("Seccomp_f")), "0")
                found.append((int(filters), bool((task / "children").read_text().strip())))
        return found

    def scheduling(self) -> dict[int, object]:
        """Return for each thread on which cores and by which rules the system runs it, if it says so."""
        found: dict[int, object] = {}
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                thread = int(task.name)
                found[thread] = frozenset(os.sched_getaffinity(thread)), os.sched_getscheduler(thread)
        return found


Place = tuple[int, int]
"""Beginning and size in bytes."""


def shared_parts(number: int, descriptor: int, places: Sequence[Place]) -> Iterator[Place]:
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


def signal_name(number: int) -> str:
    """Return a signal's name; real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
