"""A store to an input that a kernel may only read is reported as one, in every language. Other faults stay crashes."""

from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.compilers import gxx
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

pytestmark = pytest.mark.alone
CASE = Case(sizes={"rows": 8, "cols": 64}, seed=1)
TORCH = "import torch\n\ndef custom_kernel(data):\n    x, weight, out = data\n    {}\n    return out\n"
CPP = """from kernel_scientist import load
library = load(r'''
#include <thread>
extern "C" void f(char* x) { BODY }
''')

def custom_kernel(data):
    library.f(data[1])
    return data[2]
"""


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    harness = Harness(memory_mib=512)
    with WorkerPool(harness) as pool:
        yield Driver(problems.load(ROOT / "problems" / "rmsnorm"), harness, pool)


def failure(driver: Driver, source: str) -> KernelFailure:
    with driver.pool.worker() as worker, pytest.raises(KernelFailure) as caught:
        worker.load(source, lambda request: (gxx.build(request).path, ""))
        driver.row(worker, {0: driver.inputs.draw(CASE)})
    return caught.value


@pytest.mark.parametrize(
    ("source", "which", "line"),
    [
        (TORCH.format("x.add_(1)"), "to input 0", 5),
        (TORCH.format("weight[3] = 0"), "to input 1", 5),
        (TORCH.format("torch.mul(x, x, out=x)"), "to input 0", 5),
        (CPP.replace("BODY", "x[5] = 1;"), "to input 1", 8),
        (CPP.replace("BODY", "std::thread([x] { x[5] = 1; }).join();"), "to input 1", 8),
        (CPP.replace("BODY", "x[-1] = 1;"), "beside input 1", 8),
    ],
)
def test_a_store_to_a_read_only_input_is_told_with_its_line(driver: Driver, source: str, which: str, line: int) -> None:
    found = failure(driver, source)
    assert found.verdict is Verdict.INCORRECT
    assert found.reason == f"{CASE.name}: it wrote {which}, which is read-only, in its call (kernel.py, line {line})"
    (told,) = found.evidence
    assert f'File "kernel.py", line {line} in ' in told and "Extension modules" not in told and str(ROOT) not in told


@pytest.mark.parametrize("body", ["*(volatile int*)8 = 1;", "*(volatile int*)&f = 1;", "raise_it();"])
def test_another_fault_is_a_crash(driver: Driver, body: str) -> None:
    """Also one in a mapping that forbids the access, and one that the kernel raises itself."""
    source = CPP.replace("BODY", body).replace("<thread>", "<csignal>")
    raised = source.replace("extern", "static void raise_it() { raise(SIGSEGV); }\nextern", 1)
    found = failure(driver, raised)
    assert found.verdict is Verdict.CRASHED and found.reason == "SIGSEGV in its call"
    assert 'File "kernel.py", line 9 in custom_kernel' in "".join(found.evidence)
