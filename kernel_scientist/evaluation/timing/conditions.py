"""Conditions of a measurement: machine, versions, settings, and who used the CPU during it; waiting for quiet."""

import contextlib
import logging
import os
import platform
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch

from kernel_scientist.compilers import gxx
from kernel_scientist.hardware import cpu, gpu
from kernel_scientist.records import environment
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.sandbox import device_queue
from kernel_scientist.workers import execution_environment
from kernel_scientist.workers.worker_pool import WorkerPool

progress = logging.getLogger("kernel_scientist.progress")
QUIET_PERCENT = 10.0
"""Share of the machine's CPU time that others may use on a quiet machine."""
LOOK_S, AGAIN_S = 1.0, 600.0
"""Seconds over which the share is measured, and after which a wait that was in vain is repeated."""
CGROUP_STATS = (Path("/sys/fs/cgroup/cpu.stat"), Path("/sys/fs/cgroup/cpu/cpu.stat"))


def describe(pool: WorkerPool) -> dict[str, str]:
    """Return the machine, the versions and the settings of a pool's measurements."""
    return {
        "evaluator": environment.evaluator_digest()[:12],
        "machine": cpu.model(),
        "cores": str(cpu.cores()),
        "threads": str(pool.threads),
        **execution_environment.described(pool.cores),
        "caches": " ".join(f"{level}={size}" for level, size in cpu.caches().items()),
        "device": pool.device,
        "outputs": "read while the worker's threads are stopped" if pool.can_stop else "read while its threads run",
        "wake_priority": pool.native.wake_priority.name.lower(),
        "worker_priority": "real_time" if pool.precedence else "normal",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "compiler": gxx.version(),
        "system": platform.platform(),
        **(gpu.state() if pool.device != "cpu" else {}),
    }


@dataclass(frozen=True)
class Load:
    """One reading of the whole machine's CPU counters, and of the CPU time of this process and its descendants."""

    jiffies: tuple[int, ...]
    throttled: int
    own: int
    """Jiffies of this process, its descendants and those of them that have ended."""

    @staticmethod
    def now() -> "Load":
        """Return the current counters; those that the operating system lacks are zero."""
        jiffies: tuple[int, ...] = ()
        with contextlib.suppress(OSError, ValueError):
            jiffies = tuple(int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
        return Load(jiffies, _throttled(), _own_jiffies())

    def until_now(self) -> dict[str, str]:
        """Return the load now, and since this reading shares of the machine's CPU time and the throttlings.

        `busy_percent`: used by anybody; `others_percent`: used by processes other than this one (the evaluator) and its
        descendants (workers, compilers). If `steal_percent` or `throttled` is above zero, the host interrupted the
        measurement.
        """
        now = Load.now()
        spent = [b - a for a, b in zip(self.jiffies, now.jiffies, strict=False)]
        total = sum(spent)
        busy = total - spent[3] - spent[4] if total else 0
        others = busy - spent[7] - (now.own - self.own) if total else 0
        return {
            "load": f"{os.getloadavg()[0]:.2f}",
            "busy_percent": f"{100 * busy / total:.1f}" if total else "",
            "others_percent": f"{100 * max(others, 0) / total:.1f}" if total else "",
            "steal_percent": f"{100 * spent[7] / total:.2f}" if total else "",
            "throttled": str(now.throttled - self.throttled),
        }


@dataclass(frozen=True)
class Quiet:
    """What a wait for quiet found."""

    waited_s: float
    others_percent: float | None
    """Share of the machine's CPU time that others used at the end; None if the system does not say."""

    @property
    def quiet(self) -> bool:
        """Whether others left the machine alone."""
        return self.others_percent is None or self.others_percent <= QUIET_PERCENT


_busy_until = 0.0
"""A wait that was in vain is not repeated before this time (`time.monotonic`)."""


def wait_for_quiet(most_s: float, stopped: threading.Event) -> Quiet:
    """Wait until other processes use at most `QUIET_PERCENT` of the machine's CPU time, at most `most_s` seconds.

    Returns what was found. For `AGAIN_S` after a wait that was in vain nobody waits again. Raises StoppedError.
    """
    global _busy_until
    start = time.monotonic()
    most_s = most_s if start >= _busy_until else 0.0
    while most_s > 0:
        before = Load.now()
        device_queue.progressed()
        if stopped.wait(min(LOOK_S, most_s)):
            raise StoppedError("stopped while waiting for a quiet machine")
        share = before.until_now()["others_percent"]
        found = Quiet(time.monotonic() - start, float(share) if share else None)
        if found.quiet:
            return found
        if found.waited_s >= most_s:
            progress.warning("the machine is busy: others use %.0f %% of its CPU time", found.others_percent)
            _busy_until = time.monotonic() + AGAIN_S
            return found
    return Quiet(0.0, None)


def _own_jiffies() -> int:
    """Return the CPU time of this process and its descendants, with children of theirs that have ended."""
    times: dict[int, int] = {}
    children = defaultdict[int, list[int]](list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may end meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            number = int(stat.parent.name)
            times[number] = sum(map(int, fields[11:15]))  # user, system, those of children
            children[int(fields[1])].append(number)
    total, waiting = 0, [os.getpid()]
    while waiting:
        number = waiting.pop()
        total += times.get(number, 0)
        waiting += children[number]
    return total


def _throttled() -> int:
    for path in CGROUP_STATS:
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                if line.startswith("nr_throttled"):
                    return int(line.split()[1])
    return 0
