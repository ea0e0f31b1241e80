"""What times a kernel's rivals is out of its reach: the fork server, their workers, and what later workers start with.

Every kernel of `disturbers` is imported beside a rival's live worker. Then all is as before, whatever became of it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import bubblewrap, landlock
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.pool import WorkerPool
from tests.workers import disturbers

pytestmark = pytest.mark.alone
LIMITS = Harness(import_timeout_s=4, call_timeout_s=4, memory_mib=512, output_mib=8)
LOOK = """
import ctypes, json, os, resource, signal, threading

LIBC = ctypes.CDLL(None)
LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_") and name not in ("RLIMIT_DATA", "RLIMIT_AS")]
mask = os.umask(0)
os.umask(mask)
seen = {
    "cores": sorted(os.sched_getaffinity(0)),
    "policy": [os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)],
    "io": LIBC.syscall(252 if os.uname().machine == "x86_64" else 31, 1, 0),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
    "timer slack": LIBC.prctl(30, 0, 0, 0, 0),
    "huge pages": LIBC.prctl(42, 0, 0, 0, 0),
    "mask": mask,
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": [number for number in range(1, 65) if signal.getsignal(number) is signal.SIG_IGN],
    "personality": LIBC.personality(ctypes.c_ulong(0xffffffff)),
    "oom": open("/proc/self/oom_score_adj").read(),
    "threads": threading.active_count(),
    "files": sorted(set(os.listdir(".")) - {"kernel.py"}),
    "variables": {name: value for name, value in os.environ.items() if os.getcwd() not in value},
}
print(json.dumps(seen))
threads = [threading.Thread(target=str) for _ in range(32)]
for thread in threads:
    thread.start()
def custom_kernel(data): return data
"""


class State(NamedTuple):
    """What a process that times, or is timed, runs under."""

    threads: dict[int, tuple[object, ...]]
    """Cores, scheduling class and niceness of each."""
    limits: str
    io: object
    oom: str
    stopped: bool

    @classmethod
    def of(cls, pid: int) -> "State":
        folder = Path(f"/proc/{pid}")
        threads = {
            thread: (
                frozenset(os.sched_getaffinity(thread)),
                os.sched_getscheduler(thread),
                os.sched_getparam(thread).sched_priority,
                os.getpriority(os.PRIO_PROCESS, thread),
            )
            for thread in (int(task.name) for task in (folder / "task").iterdir())
        }
        process = psutil.Process(pid)
        slack = folder / "timerslack_ns"
        oom = (folder / "oom_score_adj").read_text() + (slack.read_text() if os.geteuid() == 0 else "")
        stopped = process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        return cls(threads, (folder / "limits").read_text(), process.ionice(), oom, stopped)


def pool_in(enclosure: str) -> Iterator[WorkerPool]:
    """A pool under one enclosure; `filter`: only the filter of system calls."""
    with pytest.MonkeyPatch.context() as patch:
        if enclosure != "bubblewrap":
            patch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
        level = "basic" if enclosure == "filter" else "auto"
        with WorkerPool(LIMITS.model_copy(update={"sandbox": level})) as pool:
            yield pool


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "filter"])
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    if request.param == "bubblewrap" and not bubblewrap.bubblewrap_works():
        pytest.skip("this machine has no bubblewrap")
    if request.param == "landlock" and not landlock.version():
        pytest.skip("this machine has no Landlock")
    yield from pool_in(request.param)


def imported(worker: WorkerClient, source: str) -> str:
    """Import a kernel's file; return what the worker said in the end, or how it failed."""
    try:
        worker.load(source, lambda _: (None, ""))
    except KernelFailure as failure:
        return failure.reason
    return ""


def found(pool: WorkerPool, timing: bool = True) -> Any:
    """What a fresh worker finds around it."""
    with pool.worker(timing) as worker:
        assert imported(worker, LOOK) == ""
        return json.loads(worker.log_tail().partition(": ")[2].splitlines()[-1])


def parent(pid: int) -> int:
    return psutil.Process(pid).ppid()


FILES = ("its /proc", "shared folders", "clocks of", "settings of", "locks of")
"""Disturbers that reach for files, which a filter of system calls does not see."""


@pytest.mark.parametrize("name", disturbers.BODIES)
def test_nothing_that_times_its_rivals_is_reached(name: str, pool: WorkerPool) -> None:
    if pool.harness.sandbox == "basic" and name.startswith(FILES):
        pytest.skip("files are open with harness.sandbox: basic")
    usual = found(pool)
    with pool.worker(timing=True) as rival:
        fork_server = parent(rival.process.number)
        everybody = (os.getpid(), fork_server, rival.process.number)
        before = {pid: State.of(pid) for pid in everybody}
        with pool.worker(timing=True) as worker:
            said = imported(worker, disturbers.kernel(name, rival.pid))
        assert "it reached" not in said and "victim" not in said, said
        assert {pid: State.of(pid) for pid in everybody} == before, said
        assert imported(rival, LOOK) == "", said
    assert found(pool) == usual, said
    assert not strays(fork_server), said


def strays(fork_server: int) -> list[psutil.Process]:
    """Descendants of the fork server that are no live workers: none a moment after its workers have been killed."""
    from tests.flows.service import until

    process = psutil.Process(fork_server)
    until(lambda: not process.children(recursive=True), "the killed workers end")
    return process.children(recursive=True)
