"""Conditions of a measurement: machine, versions, settings, and the load and stolen CPU time during it."""

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from kernel_scientist.compile import gxx
from kernel_scientist.hardware import cpu, gpu
from kernel_scientist.records import environment
from kernel_scientist.workers.pool import WorkerPool

CGROUP_STATS = (Path("/sys/fs/cgroup/cpu.stat"), Path("/sys/fs/cgroup/cpu/cpu.stat"))


def describe(pool: WorkerPool) -> dict[str, str]:
    """Return the machine, the versions and the settings of a pool's measurements."""
    return {
        "judge": environment.evaluator_digest()[:12],
        "machine": cpu.model(),
        "cores": str(cpu.cores()),
        "threads": str(pool.threads),
        "caches": " ".join(f"{level}={size}" for level, size in cpu.caches().items()),
        "device": pool.device,
        "outputs": "read while the worker's threads are stopped" if pool.can_stop else "read while its threads run",
        "wake_priority": pool.native.wake_priority.name.lower(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "compiler": gxx.version(),
        "system": platform.platform(),
        **(gpu.state() if pool.device != "cpu" else {}),
    }


@dataclass(frozen=True)
class Load:
    """One reading of the whole machine's CPU counters."""

    jiffies: tuple[int, ...]
    throttled: int

    @staticmethod
    def now() -> "Load":
        """Return the current counters; those that the operating system lacks are zero."""
        jiffies: tuple[int, ...] = ()
        with contextlib.suppress(OSError, ValueError):
            jiffies = tuple(int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
        return Load(jiffies, _throttled())

    def until_now(self) -> dict[str, str]:
        """Return the load now, and since this reading the shares of busy and stolen CPU time and the throttlings.

        If `steal_percent` or `throttled` is above zero, the host interrupted the measurement.
        """
        now = Load.now()
        spent = [b - a for a, b in zip(self.jiffies, now.jiffies, strict=False)]
        total = sum(spent)
        return {
            "load": f"{os.getloadavg()[0]:.2f}",
            "busy_percent": f"{100 * (total - spent[3] - spent[4]) / total:.1f}" if total else "",
            "steal_percent": f"{100 * spent[7] / total:.2f}" if total else "",
            "throttled": str(now.throttled - self.throttled),
        }


def _throttled() -> int:
    for path in CGROUP_STATS:
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                if line.startswith("nr_throttled"):
                    return int(line.split()[1])
    return 0
