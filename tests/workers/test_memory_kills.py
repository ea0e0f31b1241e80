"""What the system kills for want of memory is no kernel's fault; a kernel beyond its own limit is."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import confine, memory_kills
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

pytestmark = pytest.mark.alone  # every process of this machine sees that some were killed
CASE = Case(sizes={"size": 64}, seed=1)
HUNGRY = "def custom_kernel(data):\n    held = b'x' * (400 << 20)\n    return data[1].copy_(data[0])\n"
"""Needs 400 MiB."""
OTHERS = ("oom 3", "oom_kill_disable 0", "xoom_kill 9", "oom_group_kill 7")
"""Other lines of such files."""
KILLED = "import os, signal\ndef custom_kernel(data):\n    os.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.fixture(scope="module")
def group() -> Iterator[Path]:
    """A control group whose processes may have 64 MiB of memory, beyond which the system kills one."""
    place = memory_kills.CGROUPS
    version_1 = (place / "memory").exists()
    folder = (place / "memory" if version_1 else place) / f"kernel-scientist-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(64 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    with suppress(OSError):  # there is no swap
        (folder / "memory.swap.max").write_text("0")
    yield folder
    folder.rmdir()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    harness = Harness(memory_mib=1024)
    with WorkerPool(harness) as pool:
        yield Driver(problems.load(ROOT / "problems" / "identity"), harness, pool)


def called(driver: Driver, source: str, group: Path | None = None) -> None:
    """Call a kernel once, in a control group if one is given."""
    with driver.pool.worker() as worker:
        driver.load(worker, source, [CASE])
        if group is not None:
            (group / "cgroup.procs").write_text(str(worker.process.number))
        driver.row(worker, {0: driver.inputs.draw(CASE)})


def test_what_the_system_kills_for_want_of_memory_is_no_fault(driver: Driver, group: Path) -> None:
    with pytest.raises(InfrastructureError, match="the machine ran out of memory, and the system killed a worker in"):
        called(driver, HUNGRY, group)
    called(driver, HUNGRY)  # on a machine with memory


def test_what_ends_for_another_reason_is_the_kernels_fault(driver: Driver) -> None:
    with pytest.raises(KernelFailure) as caught:
        called(driver, KILLED)
    assert caught.value.verdict is Verdict.CRASHED
    with pytest.raises(KernelFailure, match="MemoryError") as caught:
        called(driver, HUNGRY.replace("400 << 20", "1 << 40"))  # beyond harness.memory_mib
    assert caught.value.verdict is Verdict.CRASHED


def test_a_build_that_the_system_killed_is_no_fault(tmp_path: Path, group: Path) -> None:
    join = f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"
    program = f"import os; {join}; held = b'x' * (400 << 20)"
    with pytest.raises(InfrastructureError, match="the machine ran out of memory during a build"):
        confine.run([sys.executable, "-S", "-c", program], tmp_path, 60)


@given(
    st.integers(0, 10**12),
    st.lists(st.sampled_from(["oom 3", "oom_kill_disable 0", "xoom_kill 9", "oom_group_kill 7"])),
)
def test_the_count_is_read_among_others(
    tmp_path_factory: pytest.TempPathFactory, count: int, others: list[str]
) -> None:
    file = tmp_path_factory.getbasetemp() / "memory.events"
    file.write_text("\n".join([*others, f"oom_kill {count}", *others]))
    assert memory_kills._told(file) == count
    file.write_text("\n".join(others))
    assert memory_kills._told(file) == memory_kills._told(file.with_name("absent")) == 0
