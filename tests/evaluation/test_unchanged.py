"""A kernel whose machine code is its base's ends as `no_change`; one whose code differs does not."""

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.unchanged import unchanged
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict
from tests.conftest import ROOT

PROBLEM = problems.find("fp8-blockwise-gemm")
CASES = PROBLEM.profile("full").benchmarks[:1]
SEED = (ROOT / "problems/fp8-blockwise-gemm/seeds/triton_tiled.py").read_text()


def compiled(source: str) -> Evaluation:
    found = inspect.inspect(source, PROBLEM, CASES, gpus.MI300X, 120)
    predictions = found.predictions(PROBLEM, CASES)
    return Evaluation(verdict=Verdict.OK, compile=found.report, predictions=predictions, by_model=True)


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("    tiles_m = tl.cdiv(m, BLOCK_M)\n", "    # moved\n\n    tiles_m = tl.cdiv(m, BLOCK_M)\n", True),
        ("gemm_kernel", "another_name", True),
        ('"matrix_instr_nonkdim": 0', '"matrix_instr_nonkdim": 32', True),  # what the compiler chooses by itself
        ('"waves_per_eu": 0', '"waves_per_eu": 2', False),
        ('"BLOCK_M": 64', '"BLOCK_M": 128', False),
        ('"GROUP_M": 8', '"GROUP_M": 4', False),
        ("acc += partial * scale", "acc += 2 * partial * scale", False),
    ],
)
def test_equal_machine_code_is_no_change(before: str, after: str, is_same: bool) -> None:
    assert before in SEED
    found = unchanged(compiled(SEED), compiled(SEED.replace(before, after)))
    assert (found is not None) == is_same
    assert found is None or (found.verdict is Verdict.NO_CHANGE and "those of its base" in found.reason)
