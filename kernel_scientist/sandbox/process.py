"""A worker's process as the operating system reports it, and the limit of one answer of it.

The limit is one of CPU time and of waiting. Time in which a busy machine let the process not run is free.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

REAL_TIME = os.SCHED_RR
"""Scheduling of a worker during a timed row: threads of one worker that outnumber the cores still take turns."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WAITING = 3
"""How many seconds a worker on a CPU may wait (sleep, wait for a disk or for its threads) per second of its limit."""
NEGLIGIBLE_S = 0.05
"""A use that is shorter is not looked at more closely, and the shortest time between two looks."""


class Scheduled(NamedTuple):
    """How a thread has spent its time so far, in seconds."""

    running_s: float
    """CPU time."""
    queued_s: float
    """Time in which it was ready to run, but the cores were busy."""


class Usage(NamedTuple):
    """How a process has spent its time so far."""

    threads: Mapping[int, Scheduled]
    """Its threads, but for those that have ended."""
    all_s: float
    """CPU time of all threads, and of children that have ended, in seconds."""


@dataclass(frozen=True)
class Process:
    """One process of this host."""

    number: int

    def exists(self) -> bool:
        """Whether the process is still running."""
        return Path(f"/proc/{self.number}").exists()

    def usage(self) -> Usage:
        """Return the times of the process; none if it has ended."""
        folder, threads = Path(f"/proc/{self.number}"), dict[int, Scheduled]()
        try:
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:15]  # user, system, those of children
        except OSError:
            return Usage({}, 0.0)
        for task in (folder / "task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                running_ns, queued_ns, _ = map(int, (task / "schedstat").read_text().split())
                threads[int(task.name)] = Scheduled(running_ns / 1e9, queued_ns / 1e9)
        all_s = sum(map(int, ticks)) / TICKS_PER_S
        if not any(thread.running_s for thread in threads.values()):  # this system does not count
            threads[self.number] = Scheduled(all_s, 0.0)
        return Usage(threads, all_s)

    def has_children(self) -> bool:
        """Whether the process has children, including adopted orphans (`lifetime.adopt_orphans`)."""
        children = ""
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                children += (task / "children").read_text()
        return bool(children.strip())

    def parent(self) -> "Process":
        """Return the parent; number 0 if the process has ended."""
        try:
            return Process(int(Path(f"/proc/{self.number}/stat").read_text().rpartition(")")[2].split()[1]))
        except OSError:
            return Process(0)

    def scheduling(self) -> dict[int, object]:
        """Return the cores, the scheduling policy and the niceness of each thread."""
        found: dict[int, object] = {}
        for task in Path(f"/proc/{self.number}/task").glob("*"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                thread = int(task.name)
                cores, policy = frozenset(os.sched_getaffinity(thread)), os.sched_getscheduler(thread)
                found[thread] = cores, policy, os.getpriority(os.PRIO_PROCESS, thread)
        return found

    def take_precedence(self) -> bool:
        """Give all threads, and those that they start, the lowest real-time priority.

        Return whether the operating system allows it; it does not to an ordinary user without RLIMIT_RTPRIO.
        """
        return self._schedule(REAL_TIME, os.sched_get_priority_min(REAL_TIME))

    def give_way(self) -> bool:
        """Let all threads take turns with other programs again. Return whether the operating system allows it."""
        return self._schedule(os.SCHED_OTHER, 0)

    def _schedule(self, policy: int, priority: int) -> bool:
        try:
            for task in Path(f"/proc/{self.number}/task").glob("*"):
                with contextlib.suppress(ProcessLookupError):  # it may end meanwhile
                    os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))
        except PermissionError:
            return False
        return True


class TimeLimit:
    """A limit that begins now. For a GPU's worker it is one of elapsed time, because there waiting is the work."""

    def __init__(self, process: Process, seconds: float, on_gpu: bool) -> None:
        """`seconds`: of CPU time of a thread, or on average per core; of waiting, `WAITING` times as much."""
        self.process, self.seconds, self.on_gpu = process, seconds, on_gpu
        self._start_s, self._before = time.monotonic(), process.usage()

    @property
    def longest_wait_s(self) -> float:
        """Seconds that the worker may take when it only waits."""
        return self.seconds if self.on_gpu else WAITING * self.seconds

    def exempt(self, seconds: float) -> None:
        """Do not count so many seconds, in which the worker waited for the evaluator."""
        self._start_s += seconds

    def used_s(self) -> float:
        """Return how much of the limit is used. It grows no faster than the clock."""
        elapsed_s = time.monotonic() - self._start_s
        if self.on_gpu or elapsed_s <= NEGLIGIBLE_S:
            return elapsed_s
        threads, all_s = self._usage()
        longest_s = max((thread.running_s for thread in threads), default=0.0)
        waited_s = elapsed_s - max((_ready_s(thread, all_s) for thread in threads), default=0.0)
        return max(longest_s, all_s / len(os.sched_getaffinity(0)), waited_s / WAITING)

    def left_s(self) -> float:
        """Return the least time in which the limit could be used up, at least `NEGLIGIBLE_S`; 0 if it is."""
        left_s = self.seconds - (time.monotonic() - self._start_s)
        if left_s <= 0:
            left_s = self.seconds - self.used_s()
        return max(left_s, NEGLIGIBLE_S) if left_s > 0 else 0.0

    def words(self) -> str:
        """Say how the worker used up its limit."""
        if self.on_gpu:
            return f"took longer than {self.seconds:g} s"
        threads, all_s = self._usage()
        cpu_s = max(0.0, all_s, *(thread.running_s for thread in threads))  # all_s is counted in ticks
        if cpu_s >= self.seconds:
            return f"used more than {self.seconds:g} s of CPU time"
        elapsed_s = time.monotonic() - self._start_s
        return f"did not finish: it waited, using {cpu_s:.1f} s of CPU time in {elapsed_s:.0f} s"

    def _usage(self) -> tuple[list[Scheduled], float]:
        """Return the threads' times since the limit began, and the CPU time of all, which may be less than before."""
        now, before = self.process.usage(), self._before
        none = Scheduled(0.0, 0.0)
        pairs = [(thread, before.threads.get(number, none)) for number, thread in now.threads.items()]
        since = [Scheduled(a.running_s - b.running_s, a.queued_s - b.queued_s) for a, b in pairs]
        return since, now.all_s - before.all_s


def _ready_s(thread: Scheduled, all_s: float) -> float:
    """Return how long a thread ran or was kept from it by others than its own process's threads, in seconds."""
    return thread.running_s + max(0.0, thread.queued_s - (all_s - thread.running_s))


def signal_name(number: int) -> str:
    """Return a signal's name, or its number for a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
