"""Inputs that are views on the machine for gfx942: Triton gets them as the problem made them."""

from collections.abc import Iterator

import pytest

from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.hardware import gpus
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.prepared import simulated
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.evaluation.test_layouts import KINDS, REFERENCE_FILE, loaded

SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, rows, x0, x1, y0, y1, out0, out1, columns: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, columns)
    total = 2 * tl.load(x + row * x0 + column * x1) + tl.load(y + row * y0 + column * y1)
    tl.store(out + row * out0 + column * out1, total)


def custom_kernel(data):
    x, y, (out,) = data
    add[(x.shape[0],)](x, y, out, x.shape[0], *STRIDES, *out.stride(), x.shape[1])
    return out
"""
HONEST, CONTIGUOUS = "*x.stride(), *y.stride()", "x.shape[1], 1, y.shape[1], 1"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PredictedEvaluator]:
    cases: list[dict[str, object]] = [{"kind": kind, "n": 32} for kind in KINDS]
    problem, harness = loaded(tmp_path_factory.mktemp("views"), REFERENCE_FILE, cases), Harness(call_timeout_s=60)
    with WorkerPool(harness, machine=simulated(problem, gpus.MI300X, harness.threads)) as pool:
        yield PredictedEvaluator(problem, "full", harness, pool, gpus.MI300X)


@pytest.mark.parametrize(("strides", "verdict"), [(HONEST, Verdict.OK), (CONTIGUOUS, Verdict.INCORRECT)])
def test_strides_decide_whether_a_kernel_is_right(
    evaluator: PredictedEvaluator, strides: str, verdict: Verdict
) -> None:
    kernel = Kernel(name="k", language="triton", source=SOURCE.replace("*STRIDES", strides))
    found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is verdict, (found.reason, found.evidence)
