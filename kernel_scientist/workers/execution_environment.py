"""What a worker's calls run in: cores, scheduling, threads, denormals, memory. The same for every threading library.

Each worker sets it before its sandbox closes. It inherits nothing that the fork server, a library imported there or an
earlier kernel has changed. Imports only the standard library and torch.
"""

import contextlib
import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

MALLOC = {"mmap_threshold": 32 << 20, "trim_threshold": 4 << 30, "tcache_count": 0}
"""Settings of glibc that make it keep freed memory. By default the history of a process decides whether a buffer
gets new pages in each call: the same kernel took 0.3 ms in one worker and 1.5 ms in the next. The per-thread cache
is off because blocks left in it prevent merging of free neighbours. 32 MiB is the largest value."""
SPIN_COUNT = 4000
"""How long an OpenMP thread spins for the next parallel region. By default a pool spins for some 5 ms after a call,
into the time of the next source; this is some 0.1 ms, enough to bridge the regions within one kernel (docs/log.md)."""
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PR_SET_THP_DISABLE = 41


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


def enter(cores: Sequence[int], niceness: int) -> None:
    """Give this process its cores, scheduling, number of threads, denormals and huge pages.

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
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


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
