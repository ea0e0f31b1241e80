"""What the host does for a row on a GPU does not grow with the inputs: all that grows is the device's work.

It is counted on the stand-in, in the evaluator and in the worker. No time is measured.
"""

import ctypes
import json
import os
import socket
import sys
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.client import WorkerClient
from tests.conftest import ROOT, dedent
from tests.workers import standin

pytestmark = pytest.mark.alone
SMALL, LARGE = 1 << 20, 32 << 20
"""Bytes of an input."""
ROWS = 4
READS = {"cpu", "numpy", "tolist", "tobytes", "string_at"}
"""Functions by which a process gets a tensor's bytes as its own."""
KERNEL = """
    import ctypes
    import json
    import sys
    import tracemalloc

    device = sys.modules["tests.workers.standin"].loaded.handle
    counted, calls = (ctypes.c_int64 * 2)(), 0


    def count(frame, event, function):
        global calls
        calls += event in ("call", "c_call")


    def custom_kernel(data):  # what it prints is the work since it was called before
        global calls
        sys.setprofile(None)
        before, heap = counted[0], tracemalloc.get_traced_memory()[1]
        device.counted(counted)
        print(json.dumps({"calls": calls, "runtime": counted[0] - before, "heap": heap}), flush=True)
        x, out = data
        out.copy_(x)
        calls = 0
        tracemalloc.reset_peak()
        sys.setprofile(count)
        return out


    tracemalloc.start()
    """


@dataclass(frozen=True)
class Work:
    """What a process has done for some rows."""

    calls: int
    """Of functions, Python's and those in C."""
    runtime: int
    """Calls of the GPU's runtime."""
    heap: int
    """Most bytes of its Python objects."""
    moved: int = 0
    """Bytes through the socket, in both directions."""
    names: frozenset[str] = frozenset()
    """Of the functions."""


class Counting:
    """A socket whose bytes are counted."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.moved = sock, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def sendall(self, data: bytes) -> None:
        self.moved += len(data)
        self.sock.sendall(data)

    def recv_into(self, view: memoryview) -> int:
        got = self.sock.recv_into(view)
        self.moved += got
        return got


def rows(driver: Driver, worker: WorkerClient, case: Case) -> None:
    """Make rows as a timing does: inputs are made, delivered, written; outputs are read and compared."""
    for inputs in driver.inputs.rows(case, 1, ROWS):
        _, outputs = driver.row(worker, {1: inputs[0]}, queued=True)
        driver.verify(inputs, outputs)


def evaluators(driver: Driver, worker: WorkerClient, case: Case) -> Work:
    """Return the evaluator's work for rows."""
    names, runtime, counted = Counter[str](), driver.pool.gpu.runtime.handle, (ctypes.c_int64 * 2)()

    def count(frame: FrameType, event: str, function: Any) -> None:
        if event in ("call", "c_call"):
            names[function.__name__ if event == "c_call" else frame.f_code.co_name] += 1

    sock: Any = Counting(worker.sock)
    worker.sock = sock
    runtime.counted(counted)
    before = counted[0]
    tracemalloc.start()
    sys.setprofile(count)
    try:
        rows(driver, worker, case)
    finally:
        sys.setprofile(None)
        heap = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        worker.sock = sock.sock
    runtime.counted(counted)
    return Work(names.total(), counted[0] - before, heap, sock.moved, frozenset(names))


def workers(worker: WorkerClient) -> Work:
    """Return the worker's work for the last rows, as its kernel has printed it."""
    lines = [json.loads(line) for line in os.pread(worker.log, 1 << 16, 0).splitlines()[-ROWS:]]
    calls, runtime = (sum(line[name] for line in lines) for name in ("calls", "runtime"))
    return Work(calls, runtime, max(line["heap"] for line in lines))


def refuse(*_: object) -> None:
    raise AssertionError("the host copies")


def test_what_grows_with_the_inputs_is_done_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.load(ROOT / "problems/identity")
    found: dict[int, tuple[Work, Work]] = {}
    with standin.Shop(Harness.model_validate({"memory_mib": 2048})) as pool:
        for owner, name in ((pool.native, "stream"), (pool.native, "stream_fill"), (ctypes, "memmove")):
            monkeypatch.setattr(owner, name, refuse)
        for size in (SMALL, LARGE):
            case = Case(sizes={"size": size // 2}, seed=1)
            with pool.worker(timing=True) as worker:
                driver = Driver(problem, pool.harness, pool)
                driver.load(worker, dedent(KERNEL), [case])
                rows(driver, worker, case)  # the first ones fill caches
                found[size] = evaluators(driver, worker, case), workers(worker)
    for small, large in zip(found[SMALL], found[LARGE], strict=True):
        # 32 times as much of an input; random numbers are drawn again at times, and longer numbers have more digits
        assert large.calls < 2 * small.calls and large.moved <= 2 * small.moved, (small, large)
        assert large.runtime == small.runtime > 0, (small, large)
        assert max(small.heap, large.heap) < SMALL, (small, large)
        assert not READS & large.names
