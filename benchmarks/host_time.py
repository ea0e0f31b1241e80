"""Host time of a row on a GPU, measured without one: on the tests' stand-in, whose device is the CPU.

`python -m benchmarks.host_time`. By size of an input: the time of a row, the device's part, and the host's, the rest.
The device's part is torch's operations in the evaluator, the kernel, copies of outputs, the delay, and waiting for all
that. The rest contains the counting, so it is too much rather than too little. A row has the input and a buffer of the
same size.
"""

import ctypes
import os
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from benchmarks.parts import RESULTS, measured, spread, write
from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.client import WorkerClient

SIZES_MIB = (1, 32)
ROWS, WARM_UP = 15, 10
M_MMAP_MAX = -4
SEED = "problems/identity/seeds/cpp_blocked.py"
TELLING = """
import ctypes
import sys

plain, counted = custom_kernel, (ctypes.c_int64 * 2)()


def custom_kernel(data):  # what the runtime has taken until now
    sys.modules["tests.workers.standin"].loaded.handle.counted(counted)
    print(counted[1], flush=True)
    return plain(data)
"""


def main() -> None:
    """Measure, print, write."""
    from tests.workers import standin

    ctypes.CDLL(None).mallopt(M_MMAP_MAX, 0)  # as on a GPU: torch's allocator keeps what is freed
    with measured() as found, standin.Shop(Harness(memory_mib=2048)) as pool:
        driver = Driver(problems.load(environment.root() / "problems/identity"), pool.harness, pool)
        for mib in SIZES_MIB:
            case = Case(sizes={"size": (mib << 20) // 2}, seed=1)
            with pool.worker(timing=True) as worker:
                driver.load(worker, (environment.root() / SEED).read_text() + TELLING, [case])
                parts = _rows(driver, worker, case)
            found[f"input_of_{mib}_mib"] = {f"{name}_ms": spread(each) for name, each in parts.items()}
    write(RESULTS / "host_time.json", found)


def _rows(driver: Driver, worker: WorkerClient, case: Case) -> dict[str, list[float]]:
    """Return milliseconds of rows by part: all, the device, the host."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Operations(TorchDispatchMode):
        spent_ns = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            start = time.perf_counter_ns()
            result = func(*args, **(kwargs or {}))
            self.spent_ns += time.perf_counter_ns() - start
            return result

    runtime, counted = driver.pool.gpu.runtime.handle, (ctypes.c_int64 * 2)()
    took_ns, device_ns = list[int](), list[int]()
    with Operations() as operations:
        for _ in range(WARM_UP + ROWS + 1):  # the last one only tells what the worker's runtime took in the row before
            runtime.counted(counted)
            start, before = time.perf_counter_ns(), counted[1] + operations.spent_ns
            inputs = driver.inputs.draw(case)
            _, outputs = driver.row(worker, {1: inputs}, queued=True)
            driver.verify([inputs], outputs)
            took_ns.append(time.perf_counter_ns() - start)
            runtime.counted(counted)
            device_ns.append(counted[1] + operations.spent_ns - before)
    told = [int(line) for line in os.pread(worker.log, 1 << 16, 0).split()]
    own_ns = [after - before for before, after in pairwise(told)][-WARM_UP - ROWS :]
    every = [
        (all_ns / 1e6, (here + there) / 1e6) for all_ns, here, there in zip(took_ns, device_ns, own_ns, strict=False)
    ]
    rows = every[WARM_UP:]
    return {
        "all": [row for row, _ in rows],
        "device": [device for _, device in rows],
        "host": [row - device for row, device in rows],
    }


if __name__ == "__main__":
    main()
