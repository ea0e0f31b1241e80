"""The native part: priority of the evaluator's thread, stopping threads of another process, writing past the caches."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.workers.native import NativeHarness, WakePriority
from kernel_scientist.workers.untrusted.outputs import address
from kernel_scientist.workers.worker_pool import native_library

SPINS = """
import sys, threading
count = [0] * 4
def spin(i):
    while True:
        count[i] += 1
for i in range(3):
    threading.Thread(target=spin, args=(i,), daemon=True).start()
print("ready", flush=True)
spin(3)
"""


@pytest.fixture(scope="module")
def native() -> NativeHarness:
    return NativeHarness(str(native_library()))


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", SPINS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def ticks(pid: int, thread: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


@pytest.mark.parametrize("with_main", [False, True])
def test_threads_are_stopped_and_go_on(native: NativeHarness, spinning: subprocess.Popen[str], with_main: bool) -> None:
    pid = spinning.pid
    threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    chosen = [t for t in threads if with_main or t != pid]
    for _ in range(20):
        with native.stopped(pid, with_main) as stopped:
            assert stopped.allowed
            states = {t: Path(f"/proc/{pid}/task/{t}/stat").read_text().rsplit(")", 1)[1].split()[0] for t in threads}
            assert all(states[t] == "t" for t in chosen) and (with_main or states[pid] != "t")
    before = {t: ticks(pid, t) for t in threads}
    time.sleep(0.5)
    assert sum(ticks(pid, t) - before[t] for t in threads) > 0


def test_a_signal_that_came_meanwhile_is_delivered(native: NativeHarness, spinning: subprocess.Popen[str]) -> None:
    with native.stopped(spinning.pid, with_main=True):
        os.kill(spinning.pid, signal.SIGTERM)
        time.sleep(0.05)
        assert spinning.poll() is None
    spinning.wait(10)  # here the tracer is the parent as well, so it may have taken the exit status


def test_a_process_that_is_gone_has_no_threads_to_stop(native: NativeHarness) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with native.stopped(process.pid) as stopped:
        assert not stopped.allowed


@given(st.integers(0, 5000), st.integers(0, 70), st.integers(0, 255))
def test_streamed_bytes_arrive(native: NativeHarness, size: int, offset: int, byte: int) -> None:
    source, target = bytearray(os.urandom(size + 1)), bytearray(size + offset + 1)
    native.stream(address(target) + offset, address(source), size)
    assert target[offset : offset + size] == source[:size] and not any(target[:offset]) and target[-1] == 0
    native.stream_fill(address(target) + offset, byte, size)
    assert target[offset : offset + size] == bytes([byte]) * size and target[-1] == 0


def test_the_evaluators_thread_wakes_first_where_it_may_and_is_as_before_then(native: NativeHarness) -> None:
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)
    allowed = in_a_fork(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))) == 0
    assert (native.wake_priority is WakePriority.REAL_TIME) == allowed
    after = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)
    assert after == before


def test_without_privilege_it_wakes_soon_where_the_system_knows_time_slices(native: NativeHarness) -> None:
    def ask() -> int:
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        if os.getuid() == 0:
            os.setuid(65534)
        return native.wake_priority

    version = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    assert in_a_fork(ask) == (WakePriority.SHORT_SLICE if version >= (6, 12) else WakePriority.NORMAL)


def in_a_fork(ask: Callable[[], int | None]) -> int:
    """Return the number that `ask` returns in a child, or 255 when the system refuses."""
    if (pid := os.fork()) == 0:
        status = 255
        try:
            status = ask() or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
