"""What the model makes of the machine's counts."""

from typing import Any

import pytest
from pydantic import ValidationError

from kernel_scientist import problems
from kernel_scientist.evaluation.correctness.timed_cases import ExecutedCall
from kernel_scientist.evaluation.counted import CallCounts, CountedPredictor
from kernel_scientist.gpu.capture import inspect as inspector
from kernel_scientist.gpu.model import executed
from kernel_scientist.gpu.model.executed import LaunchCounts
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.sandbox.failure import KernelFailure
from tests.conftest import ROOT

NOTHING: dict[str, Any] = {
    "kernel": "k", "code": "0" * 64, "grid": (8, 1, 1), "block": (64, 1, 1), "dynamic_lds": 0,
    "instructions": [0], "executed": [4], "asked": [0], "lines": [0], "requests": [0], "conflicts": [0],
    "waits": [0], "source_lines": [0], "callers": [0],
    "work": [1, 1, 1, 1], "storages": {}, "waves": 4, "steps": 4, "rounds": 0, "reloads": 0, "overlapped": 0,
    "shared": 0, "alone": 0,
}  # fmt: skip


def test_a_sample_of_a_triton_kernel_is_counted_as_its_arithmetic_says() -> None:
    """Without inputs, and by a sample of the workgroups: each has the same work."""
    pytest.importorskip("triton")
    problem = problems.find("fp8-blockwise-gemm", "cpu")
    case = next(one for one in problem.profile("full").tests if one.name == "m512-n4096-k512")
    source = (ROOT / "problems/fp8-blockwise-gemm/seeds/triton_tiled.py").read_text()
    found = inspector.inspect(source, problem, [case], MI300X, 120, counts=True)
    (load,) = found.loads(case.name)
    m, n, k = (case.whole(name) for name in "mnk")
    moved = m * k + n * k + 4 * (k // 128) * (m + n // 128) + 2 * m * n
    assert load.traffic.unique_bytes == moved and 0 < load.traffic.counted < load.traffic.programs
    assert load.traffic.flops == {"fp8": 2 * m * n * k}
    # each of its three loops waits twice, 29 and 20 of 220 instructions after the loads
    assert load.issue.rounds == 8 and 0.1 < load.issue.ahead < 0.2
    assert load.issue.flops * load.code.num_warps * load.traffic.programs == 2 * m * n * k


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("v_mfma_f32_32x32x16_fp8_fp8", "fp8"),
        ("v_mfma_f32_32x32x16_bf8_fp8", "fp8"),
        ("v_mfma_f32_32x32x8_bf16_1k", "bf16"),
        ("v_mfma_f32_16x16x16_f16", "fp16"),
        ("v_mfma_f32_16x16x8_xf32", "tf32"),
        ("v_mfma_f32_32x32x2_f32", "fp32"),
        ("v_mfma_i32_32x32x16_i8", "int8"),
        ("v_mfma_f64_16x16x4_f64", "fp64"),
    ],
)
def test_operands_of_matrix_instructions(name: str, products: str) -> None:
    assert executed.operands(name) == products and products in MI300X.peak_gflops


@pytest.mark.parametrize(
    "change",
    [{"waves": 0}, {"executed": [1, 2]}, {"lines": [-1]}, {"code": "../x"}, {"work": []}, {"grid": (0, 1, 1)},
     {"storages": {"1": float("inf")}}, {"more": 1}],
    ids=str,
)  # fmt: skip
def test_counts_that_are_none_are_refused(change: dict[str, Any]) -> None:
    LaunchCounts.model_validate(NOTHING)
    with pytest.raises(ValidationError):
        LaunchCounts.model_validate(NOTHING | change)
    extent = {"launches": [], "seconds": 0}
    call = ExecutedCall.model_validate({"known": [], "extent": extent, "counts": [NOTHING | change]})
    with pytest.raises(KernelFailure, match="no report on what it counted"):
        CallCounts.of(call)


def test_counts_of_other_code_are_refused_and_a_case_without_counts_is_missed() -> None:
    problem = problems.find("identity", "cpu")
    cases, report = problem.profile("full").benchmarks[:1], CompileReport(ok=True, compiler="")
    other = CallCounts.model_validate({"counts": [NOTHING]})
    with pytest.raises(KernelFailure, match="code that was not compiled"):
        CountedPredictor(problem, MI300X, report, {cases[0].name: other}).predictions(cases)
    missing, predictions = CountedPredictor(problem, MI300X, report, {}).predictions(cases)
    assert (
        missing.missed == (f"{cases[0].name}: no prediction: no launch of it was counted, or more than a report holds",)
        and not predictions
    )
