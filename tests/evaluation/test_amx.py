"""Kernels that use the processor's matrix unit are right and never too fast; half of their work is wrong."""

from collections.abc import Iterator

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware import cpu
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT

NEEDED = {"amx_bf16", "avx512vbmi", "avx512_bf16"}
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not cpu.features() >= NEEDED, reason=f"this processor lacks one of {', '.join(sorted(NEEDED))}"),
]
SOURCE = (ROOT / "tests/kernels/amx_gemm.py").read_text()
THREADINGS = ("one", "openmp", "std_thread", "pool")


def kernel(threading: str, source: str = SOURCE) -> Kernel:
    text = source.replace('THREADING = "one"', f'THREADING = "{threading}"')
    return Kernel(name=f"amx-{threading}", language="cpp", source=text)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    harness = Harness(stages=1, pairs=0, noise_runs=0, memory_mib=1024)
    with WorkerPool(harness) as pool:
        yield Evaluator(problems.load(ROOT / "problems/fp8-blockwise-gemm"), "cpu", harness, pool)


def evaluated(evaluator: Evaluator, kernel: Kernel) -> Evaluation:
    so_far = evaluator.check(kernel, evaluator.compile(kernel))
    return evaluator.time(kernel, so_far, [evaluator.reference()])


@pytest.mark.parametrize("threading", THREADINGS)
def test_a_kernel_on_the_matrix_unit_is_ok(evaluator: Evaluator, threading: str) -> None:
    found = evaluated(evaluator, kernel(threading))
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    assert all(t.floor_us is not None and t.floor_us < t.time_us for t in found.timings)
    assert found.compile is not None and found.compile.instructions["tile product"] >= 4
    assert "tdpbf16ps" in found.compile.hot_loop
    assert float(found.environment["others_percent"]) >= 0


def test_a_kernel_that_skips_half_of_the_work_is_wrong(evaluator: Evaluator) -> None:
    half = SOURCE.replace("block < k / 128; ++block", "block < (k / 128 + 1) / 2; ++block")
    found = evaluated(evaluator, kernel("one", half))
    assert half != SOURCE and found.verdict is Verdict.INCORRECT
