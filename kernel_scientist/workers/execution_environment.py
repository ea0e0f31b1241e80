"""What a worker's calls run in: cores, scheduling, threads, denormals, memory. The same for every threading library.

Each worker sets it before its sandbox closes. It inherits nothing that the fork server, a library imported there or an
earlier kernel has changed. Imports only the standard library, psutil and torch.
"""

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MALLOC = {"mmap_threshold": 32 << 20, "trim_threshold": 4 << 30, "tcache_count": 0}
"""Settings of glibc that make it keep freed memory. By default the history of a process decides whether a buffer
gets new pages in each call: the same kernel took 0.3 ms in one worker and 1.5 ms in the next. The per-thread cache
is off because blocks left in it prevent merging of free neighbours. 32 MiB is the largest value."""
SPIN_COUNT = 4000
"""How long an OpenMP thread spins for the next parallel region. By default a pool spins for some 5 ms after a call,
into the time of the next source; this is some 0.1 ms, enough to bridge the regions within one kernel (docs/log.md)."""
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
OOM_SCORE = Path("/proc/self/oom_score_adj")
PR_SET_TIMERSLACK, PR_SET_THP_DISABLE = 29, 41
TIMER_SLACK_NS = 50_000
"""How much later than asked a sleeping thread may wake: Linux' default."""
UMASK = 0o022


def variables(threads: int) -> dict[str, str]:
    """Return the environment variables of OpenMP and glibc.

    OpenMP does not bind its threads. If it did (OMP_PROC_BIND), its runtime would bind the main thread to one core as
    well, and every thread that the kernel starts by other means would inherit that core.
    """
    return {
        "OMP_NUM_THREADS": str(threads),
        "OMP_DYNAMIC": "false",
        "OMP_PROC_BIND": "false",
        "GOMP_SPINCOUNT": str(SPIN_COUNT),
        "GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}={number}" for name, number in MALLOC.items()),
    }


@dataclass(frozen=True)
class Inherited:
    """What workers inherit of the fork server: its limits and oom score, as they were before the first worker."""

    limits: tuple[tuple[int, tuple[int, int]], ...]
    oom_score: str

    @classmethod
    def now(cls) -> "Inherited":
        """Return those of this process."""
        numbers = {number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}
        return cls(tuple((number, resource.getrlimit(number)) for number in numbers), OOM_SCORE.read_text())

    def restore(self) -> None:
        """Give this process the same. Raises OSError or ValueError if a limit cannot be raised again."""
        for number, limits in self.limits:
            if resource.getrlimit(number) != limits:
                resource.setrlimit(number, limits)
        if OOM_SCORE.read_text() != self.oom_score:
            OOM_SCORE.write_text(self.oom_score)


def enter(cores: Sequence[int], niceness: int) -> None:
    """Give this process its cores, scheduling, number of threads, denormals and huge pages, and the usual settings of
    what else a process inherits: priority of I/O, timers' slack, personality, umask, blocked signals.

    Raises OSError if the cores cannot be had.
    """
    import torch

    os.sched_setaffinity(0, cores)
    with contextlib.suppress(OSError):  # a container may refuse what is the default anyway
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(PermissionError):  # a program that was started niced may not become less so
        os.nice(niceness - os.getpriority(os.PRIO_PROCESS, 0))
    if torch.get_num_threads() != len(cores):
        torch.set_num_threads(len(cores))
    torch.set_flush_denormal(False)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(TIMER_SLACK_NS), 0, 0, 0)
    libc.personality(ctypes.c_ulong(0))
    with contextlib.suppress(psutil.AccessDenied):  # as for the niceness
        psutil.Process().ionice(psutil.IOPRIO_CLASS_NONE)
    os.umask(UMASK)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def described(cores: Sequence[int]) -> dict[str, str]:
    """Return the entries of a measurement's record that `enter` and `variables` make true."""
    pages = ""
    with contextlib.suppress(OSError):
        pages = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]
    return {
        "affinity": ",".join(map(str, cores)),
        "online_cores": str(os.cpu_count()),  # what std::thread::hardware_concurrency says, whatever the affinity
        "binding": "none: any thread of a worker may run on any of its cores",
        "openmp": f"{len(cores)} threads, GOMP_SPINCOUNT {SPIN_COUNT}",
        "denormals": "kept",
        "allocator": "glibc, freed memory is kept",
        "huge_pages": pages or "unknown",
    }
