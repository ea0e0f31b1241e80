"""The limits of a call and of an import: CPU time and waiting. A busy machine is not the kernel's fault."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

pytestmark = pytest.mark.alone
CASE = Case(sizes={"size": 64}, seed=1)
COMPETITORS = 6
HEAD = "import threading, time\n"
WORK = "end = time.thread_time() + 0.6\nwhile time.thread_time() < end: pass\n"
"""Much of the limit, which one of so many competitors cannot have before the limit has passed on the clock."""
SPIN, SLEEP = "while True: pass\n", "time.sleep(1e9)\n"
SPIN_ASIDE = """def spin():
    while True: pass
thread = threading.Thread(target=spin)
thread.start()
thread.join()
"""
COMPUTED, WAITED = "used more than 1 s of CPU time", "did not finish: it waited, using"


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    harness = Harness(call_timeout_s=1, import_timeout_s=1, memory_mib=512, threads=1)
    with WorkerPool(harness) as pool:
        yield Driver(problems.load(ROOT / "problems" / "identity"), harness, pool)


@pytest.fixture
def busy(driver: Driver) -> Iterator[None]:
    """Keep the workers' core busy. A session each, because a session's processes may share one portion of the core."""
    command = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{driver.pool.cores[0]}}})\n{SPIN}"]
    competitors = [subprocess.Popen(command, start_new_session=True) for _ in range(COMPETITORS)]
    yield
    for competitor in competitors:
        competitor.kill()
        competitor.wait()


def kernel(imported: str = "", called: str = "") -> str:
    body = "".join(f"    {line}\n" for line in called.splitlines())
    return f"{HEAD}{imported}def custom_kernel(data):\n{body}    return data[1].copy_(data[0])\n"


def call(driver: Driver, source: str) -> None:
    """Import a kernel and call it once. Raises KernelFailure."""
    with driver.pool.worker() as worker:
        driver.load(worker, source, [CASE])
        inputs = driver.inputs.draw(CASE)
        _, outputs = driver.row(worker, {0: inputs})
        driver.verify([inputs], outputs)


@pytest.mark.slow
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("source", [kernel(called=WORK), kernel(imported=WORK)], ids=["call", "import"])
def test_a_busy_machine_is_no_timeout(driver: Driver, source: str) -> None:
    call(driver, source)


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("body", "words"), [(SPIN, COMPUTED), (SPIN_ASIDE, COMPUTED), (SLEEP, WAITED)], ids=["spins", "aside", "sleeps"]
)
def test_a_hang_is_a_timeout_on_a_busy_machine(driver: Driver, body: str, words: str) -> None:
    with pytest.raises(KernelFailure, match=f"its call {words}") as caught:
        call(driver, kernel(called=body))
    assert caught.value.verdict is Verdict.TIMEOUT


@pytest.mark.parametrize(
    ("body", "words"), [(SPIN, COMPUTED), (SPIN_ASIDE, COMPUTED), (SLEEP, WAITED)], ids=["spins", "aside", "sleeps"]
)
@pytest.mark.parametrize("place", ["import", "call"])
def test_a_hang_is_a_timeout_that_says_of_which_kind(driver: Driver, place: str, body: str, words: str) -> None:
    source = kernel(imported=body) if place == "import" else kernel(called=body)
    with pytest.raises(KernelFailure, match=f"its {place} {words}") as caught:
        call(driver, source)
    assert caught.value.verdict is Verdict.TIMEOUT


def test_a_short_wait_is_no_hang(driver: Driver) -> None:
    call(driver, kernel(called="time.sleep(1.2)\n"))


def test_slow_calls_before_the_rows_do_not_add_up_to_a_timeout(driver: Driver) -> None:
    source = kernel(called=WORK)
    with driver.pool.worker() as worker:
        driver.load(worker, source, [CASE])
        driver.row(worker, {0: driver.inputs.draw(CASE)})
        for _ in range(4):
            driver.row(worker, {1: driver.inputs.draw(CASE)}, warm=0)
