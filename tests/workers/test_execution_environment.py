"""What a kernel finds around it: what the record states, whatever library it asks, and nothing that others left."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.timing import conditions
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

CASE = Case(sizes={"size": 64}, seed=1)
KERNEL = """
import json
import os
import threading

import torch

from kernel_scientist import load

SOURCE = r'''
#include <cstdint>
#include <future>
#include <omp.h>
#include <sched.h>
#include <thread>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static int64_t cores() {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}

extern "C" void look(int64_t* seen) {
    seen[0] = cores();
    seen[1] = std::thread::hardware_concurrency();
    seen[2] = omp_get_max_threads();
    seen[3] = omp_get_num_procs();
    int64_t least = 1 << 20;
#pragma omp parallel reduction(min : least)
    least = cores();
    seen[4] = least;
    std::thread([&] { seen[5] = cores(); }).join();
    seen[6] = std::async(std::launch::async, cores).get();
#if defined(__SSE__)
    seen[7] = _mm_getcsr() & 0x8040;  // flush to zero, denormals are zero
#endif
}
'''
kernel = load(SOURCE)
NAMES = ["main", "hardware_concurrency", "omp_threads", "omp_procs", "omp", "std_thread", "async"]


def custom_kernel(data):
    torch.ones(300, 300) @ torch.ones(300, 300)  # OpenMP's threads of torch have run, too
    numbers = torch.zeros(8, dtype=torch.int64)
    kernel.look(numbers)
    *counts, denormals_off = numbers.tolist()
    seen = dict(zip(NAMES, counts))
    seen["main, after OpenMP"] = len(os.sched_getaffinity(0))
    thread = threading.Thread(target=lambda: seen.update(python=len(os.sched_getaffinity(0))))
    thread.start()
    thread.join()
    seen["torch"] = torch.get_num_threads()
    print(json.dumps([seen, denormals_off, os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))]))
    return data[1].copy_(data[0])
"""
WITHOUT_SANDBOX = Harness(sandbox="none", memory_mib=512)


def found(driver: Driver, source: str = KERNEL, timing: bool = True) -> Any:
    """What a kernel has printed in a worker of its own."""
    with driver.pool.worker(timing) as worker:
        driver.load(worker, source, [CASE])
        inputs = driver.inputs.draw(CASE)
        driver.verify([inputs], driver.row(worker, {0: inputs})[1])
        return json.loads(worker.log_tail().partition(": ")[2].splitlines()[-1])


def driver(pool: WorkerPool) -> Driver:
    return Driver(problems.load(ROOT / "problems" / "identity"), pool.harness, pool)


@pytest.fixture(scope="module", params=[0, 1])
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    with WorkerPool(Harness(threads=request.param, memory_mib=512)) as pool:
        yield pool


def test_every_library_has_the_cores_of_the_record(pool: WorkerPool) -> None:
    recorded = conditions.describe(pool)
    seen, denormals_off, policy, cores = found(driver(pool))
    hardware = seen.pop("hardware_concurrency")  # glibc counts the cores that are online, a single version its own
    assert hardware in (int(recorded["online_cores"]), pool.threads)
    assert set(seen.values()) == {int(recorded["threads"])} == {pool.threads}, seen
    assert ",".join(map(str, cores)) == recorded["affinity"] and recorded["binding"].startswith("none")
    assert not denormals_off and recorded["denormals"] == "kept"
    assert policy == (os.SCHED_RR if pool.precedence else os.SCHED_OTHER)


def test_a_worker_inherits_nothing_that_another_did_to_the_fork_server() -> None:
    """Without a sandbox, so that the kernel reaches its parent."""
    harm = "os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})\n"
    with WorkerPool(WITHOUT_SANDBOX) as pool:
        before = found(driver(pool))
        found(driver(pool), KERNEL.replace("kernel = load", f"{harm}kernel = load"))
        assert found(driver(pool)) == before


def test_the_evaluator_says_how_much_others_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work of a child of ours is not others'; work of a process that is nobody's child here is."""
    monkeypatch.setattr(conditions, "_busy_until", 0.0)  # an earlier test may have waited in vain
    spin = "import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass"
    before = conditions.Load.now()
    subprocess.run([sys.executable, "-c", spin], check=True)
    ours = conditions.Load.now().own - before.own
    assert ours >= 1.4 * os.sysconf("SC_CLK_TCK")
    shell = f"setsid {sys.executable} -c '{spin}' >/dev/null & "  # its parent ends at once: it is nobody's child here
    before = conditions.Load.now()
    subprocess.run(["sh", "-c", shell], check=True)
    waited = conditions.wait_for_quiet(1.0, threading.Event())
    until = before.until_now()
    assert float(until["others_percent"]) > 0 and waited.waited_s >= 1.0
    assert 0 <= float(until["others_percent"]) <= float(until["busy_percent"]) <= 100


def test_a_program_that_was_started_niced_has_workers() -> None:
    """Under bubblewrap, and as an ordinary user, they may not become less nice."""
    start = (
        "from kernel_scientist.records.params import Harness\n"
        "from kernel_scientist.workers.worker_pool import WorkerPool\n"
        "with WorkerPool(Harness(memory_mib=512)) as pool, pool.worker(timing=True) as worker: print(worker.layers)"
    )
    command = ["nice", "-n", "7", sys.executable, "-c", start]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "seccomp" in done.stdout, done.stderr
