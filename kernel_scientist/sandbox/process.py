"""State of a worker's process, as the operating system reports it."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process of this host."""

    number: int

    def exists(self) -> bool:
        """Whether the process is still running."""
        return Path(f"/proc/{self.number}").exists()

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
