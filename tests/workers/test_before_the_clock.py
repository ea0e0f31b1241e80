"""No code of a kernel runs between the moment at which its inputs are readable and the start of its time."""

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT, dedent
from tests.workers import standin

pytestmark = pytest.mark.alone
CASE = Case(sizes={"size": 4096}, seed=1)
WORK_S = 0.05
ALARM = """
    import ctypes
    import signal
    import sys
    import time

    frame = sys._getframe()
    while type(frame.f_locals.get("self")).__name__ != "Worker":
        frame = frame.f_back
    worker = frame.f_locals["self"]
    ready = []


    def slow(data):
        x, out = data
        end = time.perf_counter() + WORK_S
        while time.perf_counter() < end:
            pass
        out.copy_(x)
        return out


    def guard():
        out = worker.data[1][1]
        return ctypes.string_at(out.data_ptr() + out.nbytes, 256)  # written last


    def tick(_):
        if not ready and guard() != before:
            ready.append(slow(worker.data[1]))


    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(tick)
    ctypes.CDLL(None).signal(signal.SIGALRM, handler)


    def custom_kernel(data):
        global before
        if data[0].data_ptr() == worker.data[0][0].data_ptr():  # the untimed call before the row
            ready.clear()
            before = guard()
            signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
            return data[1]
        signal.setitimer(signal.ITIMER_REAL, 0)
        return ready[0] if ready else slow(data)
    """


@pytest.mark.parametrize("make", [WorkerPool, standin.Shop])
def test_a_signal_that_comes_then_is_handled_in_the_timed_call(make: type[WorkerPool]) -> None:
    limits = {"memory_mib": 2048, "call_timeout_s": 5, "stages": 1, "noise_runs": 0}
    problem = problems.load(ROOT / "problems/identity")
    with make(Harness.model_validate(limits)) as pool, pool.worker(timing=True) as worker:
        driver = Driver(problem, pool.harness, pool)
        driver.load(worker, dedent(ALARM).replace("WORK_S", str(WORK_S)), [])
        warm = {0: driver.inputs.draw(CASE), 1: driver.inputs.draw(CASE)}
        driver.deliver(worker, warm)
        driver.write(worker, warm)
        for _ in range(12):
            inputs = driver.inputs.draw(CASE)
            row, outputs = driver.row(worker, {1: inputs}, warm=0)
            driver.verify([inputs], outputs)
            assert row.wall_ns >= WORK_S * 1e9
