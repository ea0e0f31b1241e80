"""Facts about a worker's process that the system reports, not the worker."""

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
        """Whether it has not ended."""
        return Path(f"/proc/{self.number}").exists()

    def has_children(self) -> bool:
        """Whether programs that it started are running; it adopts their orphans (`lifetime.adopt_orphans`)."""
        children = ""
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                children += (task / "children").read_text()
        return bool(children.strip())

    def scheduling(self) -> dict[int, object]:
        """Return, by thread, the cores and the scheduling policy by which the system runs it."""
        found: dict[int, object] = {}
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                thread = int(task.name)
                found[thread] = frozenset(os.sched_getaffinity(thread)), os.sched_getscheduler(thread)
        return found


def signal_name(number: int) -> str:
    """Return a signal's name; real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
