"""The evaluator's path for GPUs from end to end, on a stand-in for the vendor's library (`standin`), and cheats on it.

No figure here says anything about a GPU. The tests show that memory, delays and seals do what they should.
"""

from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from tests.conftest import ROOT, dedent
from tests.workers import standin

pytestmark = pytest.mark.alone
CASE = Case(sizes={"size": 4096}, seed=1)
COPY = """
    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        return out
    """


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    limits = {"memory_mib": 2048, "call_timeout_s": 5, "tampering": "allow"}
    harness = Harness.model_validate({"gpu_warmup_s": 0, "stages": 1, "pairs": 0, "noise_runs": 0, **limits})
    with standin.Shop(harness) as shop:
        yield Evaluator(problems.load(ROOT / "problems" / "identity"), "cpu", harness, shop)


def checked(evaluator: Evaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="cpp", source=dedent(source))
    return evaluator.check(kernel, evaluator.compile(kernel), [CASE])


def timed(evaluator: Evaluator, source: str) -> Evaluation:
    """Time a kernel that was not checked first: what is tried is what the timing itself sees."""
    kernel = Kernel(name="k", language="cpp", source=dedent(source))
    return evaluator.time(kernel, evaluator.compile(kernel), [evaluator.reference()], cases=[CASE])


def test_an_honest_kernel_passes(evaluator: Evaluator) -> None:
    found = checked(evaluator, COPY)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    found = timed(evaluator, COPY)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    assert found.timings[0].time_us > 0 and found.speedups[0].against == "reference"


@pytest.mark.parametrize("where", ["x[-1] += 1", "ctypes.memset(out.data_ptr() + out.nbytes, 1, 1)"])
def test_who_writes_to_inputs_or_beside_buffers_is_noticed(evaluator: Evaluator, where: str) -> None:
    source = f"""
    import ctypes

    def custom_kernel(data):
        x, out = data
        out.copy_(x)
        {where}
        return out
    """
    found = checked(evaluator, source)
    assert found.verdict is Verdict.INCORRECT and "outside its buffers" in found.reason, (found.reason, found.evidence)


def test_a_worker_may_start_programs_until_it_has_compiled(evaluator: Evaluator) -> None:
    source = dedent(COPY).replace("    x, out", "    subprocess.run(['true'])\n    x, out")
    with evaluator.pool.worker() as worker:
        evaluator.driver.load(worker, f"import subprocess\n{source}", [CASE])
        with pytest.raises(KernelFailure, match="forbidden system call"):
            evaluator.driver.row(worker, {0: evaluator.inputs.draw(CASE)})
