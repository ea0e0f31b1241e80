"""State of a worker's process, as the operating system reports it."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """How a process has spent its time so far, in seconds."""

    running_s: float
    """CPU time of the main thread."""
    queued_s: float
    """Time in which the main thread was ready to run, but the cores were busy."""
    all_s: float
    """CPU time of all threads, and of children that have ended."""


@dataclass(frozen=True)
class Process:
    """One process of this host."""

    number: int

    def exists(self) -> bool:
        """Whether the process is still running."""
        return Path(f"/proc/{self.number}").exists()

    def usage(self) -> Usage:
        """Return the times of the process; zeros if it has ended."""
        folder = Path(f"/proc/{self.number}")
        try:
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:15]  # user, system, those of children
            running_ns, queued_ns, _ = map(int, (folder / "schedstat").read_text().split())
        except OSError:
            return Usage(0, 0, 0)
        all_s = sum(map(int, ticks)) / TICKS_PER_S
        return Usage(running_ns / 1e9 or all_s, queued_ns / 1e9, all_s)  # 0: this system does not count

    def has_children(self) -> bool:
        """Whether the process has children, including adopted orphans (`lifetime.adopt_orphans`)."""
        children = ""
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                children += (task / "children").read_text()
        return bool(children.strip())

    def scheduling(self) -> dict[int, object]:
        """Return the cores and the scheduling policy of each thread."""
        found: dict[int, object] = {}
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                thread = int(task.name)
                found[thread] = frozenset(os.sched_getaffinity(thread)), os.sched_getscheduler(thread)
        return found


def signal_name(number: int) -> str:
    """Return a signal's name, or its number for a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
