"""Checking runs through the evaluator: what a kernel's machine code does to memory reaches its verdict."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluate.predicted import PredictedEvaluator
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.machine import library
from kernel_scientist.hardware import gpus
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.workers.pool import WorkerPool

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
SEED = (
    HEAD + "def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
    "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)\n\n\n"
    "def custom_kernel(data):\n    x, out = data\n    n = x.numel()\n"
    "    copy[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)\n    return out\n"
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("identity")
    machine = library.build(environment.cache_folder() / "machine")
    settings = {
        "facts": asdict(inspect.facts(gpus.MI300X)), "writes": problem.writes, "updates": (), "threads": 1,
        "library": str(machine), "checks": True,
    }  # fmt: skip
    harness = Harness(call_timeout_s=20, import_timeout_s=20, noise_runs=0)
    with WorkerPool(harness, "cpu", ("kernel_scientist.gpu.machine.worker_setup",), settings) as shop:
        evaluator = PredictedEvaluator(problem, "auto", harness, shop, gpus.MI300X)
        large = evaluator.profile.benchmarks[1:]
        evaluator.profile = replace(evaluator.profile, vary={"size": (1, 5000, 1)}, benchmarks=large)
        yield evaluator


def evaluated(evaluator: PredictedEvaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="triton", source=source)
    return evaluator.check(kernel, Evaluation(verdict=Verdict.OK, by_model=True))


def test_a_sound_kernel_is_right_and_covered(evaluator: PredictedEvaluator) -> None:
    found = evaluated(evaluator, SEED)
    assert found.verdict is Verdict.OK, found.reason


@pytest.mark.parametrize(
    ("before", "after", "kind", "line", "bug"),
    [
        (", mask=at < n), mask", "), mask", "out-of-bounds read", 9, "B.3"),
        ("mask=at < n), mask=at < n)", "mask=at < n))", "out-of-bounds write", 9, "B.3"),
        ("out_ptr + at,", "out_ptr + at % 256,", "write race", 9, "C.1"),
        ("tl.load(x_ptr", "tl.load(out_ptr", "uninitialised read", 9, "B.2"),
    ],
)
def test_a_defect_is_incorrect_with_its_line(
    evaluator: PredictedEvaluator, before: str, after: str, kind: str, line: int, bug: str
) -> None:
    found = evaluated(evaluator, SEED.replace(before, after))
    assert found.verdict is Verdict.INCORRECT
    assert kind in found.reason and f"line {line}" in found.reason and "_ptr in copy" in found.reason, found.reason
    assert bug_taxonomy.classify(found).id == bug


def test_programs_that_wait_for_ever_are_told(evaluator: PredictedEvaluator) -> None:
    waits = "    while tl.atomic_add(flag_ptr, 0) == 0:\n        pass\n"
    source = SEED.replace("    at = tl.program_id", f"{waits}    at = tl.program_id").replace(
        "out_ptr, n,", "out_ptr, flag_ptr, n,"
    )
    source = source.replace("(x, out, n,", "(x, out, torch.zeros(1, dtype=torch.int32), n,")
    found = evaluated(evaluator, source)
    assert found.verdict is Verdict.INCORRECT and "deadlock of flag_ptr in copy, line 8" in found.reason, found.reason
    assert bug_taxonomy.classify(found).id == "B.5"
